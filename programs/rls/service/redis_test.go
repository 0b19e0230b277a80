//go:build unix

package service_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/rls/service"
)

func openStore(t *testing.T, server *redistest.Server) *distributed.Store {
	t.Helper()
	store, err := distributed.New(server.Client(), distributed.WithTimeout(5*time.Second), distributed.WithFallback(distributed.FallbackDeny))
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// On Redis two services share the buckets, and the descriptors of a request are
// decided in one step there.
func TestRedis(t *testing.T) {
	server := redistest.Start(t)
	open := func() *rig {
		return newRig(t, `
domains:
  - name: d
    descriptors:
      - {key: user, name: user, limit: 10/h}
      - {key: tenant, name: tenant, limit: 2/h}
      - {key: free, unlimited: true}
`, openStore(t, server))
	}
	one := open()
	anyDenies(t, one)
	resp := open().ask(0, descriptor("user=ann"), descriptor("tenant=t"))
	require.Equal(t, over, resp.OverallCode)
	require.Equal(t, over, resp.Statuses[1].Code)
}

func TestNoValueIsAnErrorOnRedis(t *testing.T) {
	noValueIsAnError(t, newRig(t, valuesFile, openStore(t, redistest.Start(t))))
}

// The service keeps 1024 different limits from requests, and rejects none: the spent units of
// a forgotten limit stay spent, on Redis. An error would let the request pass.
func TestManyOverridesOnRedis(t *testing.T) {
	r := newRig(t, valuesFile, openStore(t, redistest.Start(t)))
	with := func(n uint32) *rls.RateLimitRequest {
		d := descriptor("x=1")
		d.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: envoytype.RateLimitUnit_HOUR}
		return &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{d}}
	}
	for n := range uint32(mostOverrides + 10) {
		require.Equal(t, n, r.send(with(n + 1)).Statuses[0].LimitRemaining)
	}
	require.Equal(t, over, r.send(with(1)).OverallCode, "it was forgotten here, and not on Redis")
	require.Equal(t, uint32(5), r.send(with(7)).Statuses[0].LimitRemaining)
}

// While Redis is away nothing is given back, and the other descriptors are decided: an error
// would let the request pass.
func TestNegativeHitsWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	r := newRig(t, valuesFile, openStore(t, server)) // whose fallback denies
	require.Equal(t, under, r.ask(1, descriptor("a=1")).OverallCode)
	server.Kill()
	require.Equal(t, over, r.ask(1, descriptor("a=1"), back(1, "b=1")).OverallCode)
}

// Limits in the process give back what they can while Redis is away.
func TestNegativeHitsOfBothKindsOfLimits(t *testing.T) {
	server := redistest.Start(t)
	f, err := config.Parse("f", []byte("domains: [{name: d, descriptors: [{key: here, limit: 7/d}, {key: redis, limit: 8/d}, {key: none, limit: 0/d}]}]"))
	require.NoError(t, err)
	var log bytes.Buffer
	s, err := service.New(f, service.Options{
		Store: openStore(t, server), Log: slog.New(slog.NewTextHandler(&log, nil)),
		Wrap: func(_ string, l algo.Limiter) algo.Limiter {
			if d := algo.About(l); d.Quota == 7 {
				return algo.Must(algo.NewTokenBucket(algo.PerDay(7)))
			}
			return l
		},
	})
	require.NoError(t, err)
	left := func(ds ...*ratelimit.RateLimitDescriptor) (all []uint32) {
		resp, err := s.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "d", HitsAddend: 5, Descriptors: ds})
		require.NoError(t, err)
		for _, st := range resp.Statuses {
			all = append(all, st.LimitRemaining)
		}
		return all
	}
	require.Equal(t, []uint32{3, 2}, left(descriptor("redis=1"), descriptor("here=1")))
	require.Equal(t, []uint32{4, 0, 3}, left(back(1, "redis=1"), back(1, "none=1"), back(1, "here=1")))
	require.Empty(t, log.String()[strings.Index(log.String(), "\n")+1:], "one line, about the configuration")
	server.Kill()
	require.Equal(t, uint32(5), left(back(1, "redis=1"), back(1, "none=1"), back(2, "here=1"))[2])
	require.Contains(t, log.String(), "descriptors[0]: is_negative_hits")
	require.NotContains(t, log.String(), "descriptors[2]")
}
