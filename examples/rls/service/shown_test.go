package service_test

import (
	"context"
	"log/slog"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/examples/gateway/config"
	"github.com/sluice-go/sluice/examples/gateway/ops"
	"github.com/sluice-go/sluice/examples/rls/service"
)

// keys records the keys that a limiter is asked for.
type keys struct {
	algo.Limiter
	last *string
}

func (k keys) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	*k.last = key
	return k.Limiter.Acquire(ctx, key, n)
}

// Operators name callers by the values of the entries that the file leaves open.
func TestIdentities(t *testing.T) {
	f, err := config.Parse("f", []byte(`
domains:
  - name: d
    descriptors:
      - key: plan
        value: gold
        descriptors:
          - {key: user, name: user, limit: 100/min burst 20}
          - {key: path, value: "/a*", name: path, limit: 1/h}
      - {key: plan, value: free, name: free, limit: 1/h}
`))
	require.NoError(t, err)
	var last string
	var limits map[string]ops.Limit
	s, err := service.New(f, service.Options{
		Log:     slog.New(slog.DiscardHandler),
		Wrap:    func(_ string, l algo.Limiter) algo.Limiter { return keys{l, &last} },
		Changed: func(shown map[string]ops.Limit) error { limits = shown; return nil },
	})
	require.NoError(t, err)
	require.Equal(t, "100/min burst 20", limits["user"].Text)
	for _, test := range []struct {
		name          string
		entries       []string
		parts, values []string
	}{
		{"user", []string{"plan=gold", "user=ann"}, []string{"user"}, []string{"ann"}},
		{"path", []string{"plan=gold", "path=/abc"}, []string{"path"}, []string{"/abc"}},
		{"free", []string{"plan=free"}, []string{"everybody: leave empty"}, []string{""}},
	} {
		_, err := s.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor(test.entries...)}})
		require.NoError(t, err)
		id := limits[test.name].Identity
		require.Equal(t, test.parts, id.Parts)
		key, err := id.Key(test.values)
		require.NoError(t, err)
		require.Equal(t, last, key)
	}
}
