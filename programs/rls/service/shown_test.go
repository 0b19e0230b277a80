package service_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/ops"
	"github.com/sluice-go/sluice/programs/rls/service"
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

// TestQuotaIsNoTrial: a quota denies when all quotas of a request are spent, so operators see no trial,
// and the events of such a request are denials.
func TestQuotaIsNoTrial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quota.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`
domain: d
descriptors:
  - {key: user, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: tried, quota_mode: true, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
`), 0o600))
	f, err := config.Parse("f", []byte("envoy_files: ['"+path+"']\n"))
	require.NoError(t, err)
	var trials []string
	var events []telemetry.Event
	s, err := service.New(f, service.Options{
		Log: slog.New(slog.DiscardHandler),
		Changed: func(shown map[string]ops.Limit) error {
			for name, l := range shown {
				if l.Trial {
					trials = append(trials, name)
				}
			}
			return nil
		},
		Observe: func(e telemetry.Event) { events = append(events, e) },
	})
	require.NoError(t, err)
	require.Equal(t, []string{"d.tried"}, trials)
	for _, want := range []rls.RateLimitResponse_Code{rls.RateLimitResponse_OK, rls.RateLimitResponse_OVER_LIMIT} {
		resp, err := s.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor("user=ann")}})
		require.NoError(t, err)
		require.Equal(t, want, resp.OverallCode)
	}
	require.Len(t, events, 2)
	require.Equal(t, telemetry.Allowed, events[0].Result)
	require.Equal(t, telemetry.Denied, events[1].Result)
	require.Equal(t, algo.Quota, events[1].Decision.Reason)
	require.Equal(t, algo.Admitted, events[1].Decision.Trial)
}
