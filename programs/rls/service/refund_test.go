package service_test

import (
	"log/slog"
	"math"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/rls/service"
)

const refundFile = `
domains:
  - name: d
    descriptors:
      - {key: bucket, limit: 10/d}
      - {key: window, limit: fixed-window 10/d}
      - {key: trial, limit: 10/d, shadow: true}
      - {key: log, limit: sliding-log 10/d}
      - {key: free, unlimited: true}
`

// back is a descriptor that gives n units back.
func back(n uint64, entries ...string) *ratelimit.RateLimitDescriptor {
	d := descriptor(entries...)
	d.HitsAddend, d.IsNegativeHits = wrapperspb.UInt64(n), true
	return d
}

// Tokens are charged by estimate before a call, and the rest is given back after it.
func TestNegativeHits(t *testing.T) { negativeHits(t, newRig(t, refundFile, nil)) }
func TestNegativeHitsOnRedis(t *testing.T) {
	negativeHits(t, newRig(t, refundFile, openStore(t, redistest.Start(t))))
}

func negativeHits(t *testing.T, r *rig) {
	left := func(entry string) uint32 {
		return r.ask(0, back(0, entry)).Statuses[0].LimitRemaining
	}
	for _, entry := range []string{"bucket=1", "window=1", "trial=1"} {
		require.Equal(t, uint32(10), left(entry))
		require.Equal(t, uint32(2), r.ask(8, descriptor(entry)).Statuses[0].LimitRemaining)
		resp := r.ask(0, back(5, entry))
		require.Equal(t, under, resp.OverallCode)
		require.Equal(t, uint32(7), resp.Statuses[0].LimitRemaining)
		require.Equal(t, uint32(0), r.ask(7, descriptor(entry)).Statuses[0].LimitRemaining)
		require.Equal(t, under, r.ask(1, back(1, entry)).OverallCode, "nothing is asked for")
		require.Equal(t, uint32(1), left(entry))
		require.Equal(t, uint32(10), r.ask(1, back(math.MaxUint64, entry)).Statuses[0].LimitRemaining, "no more than was spent")
	}
	// Beside another descriptor, which is denied: the units are given back nevertheless.
	require.Equal(t, uint32(0), r.ask(10, descriptor("bucket=2")).Statuses[0].LimitRemaining)
	require.Equal(t, uint32(6), r.ask(4, descriptor("bucket=3")).Statuses[0].LimitRemaining)
	resp := r.ask(1, descriptor("bucket=2"), back(3, "bucket=3"), back(9, "free=1"), back(9, "unknown=1"))
	require.Equal(t, over, resp.OverallCode)
	require.Equal(t, under, resp.Statuses[1].Code)
	require.Equal(t, uint32(9), resp.Statuses[1].LimitRemaining)
	// The number of the request, and a limit that it brings along.
	own := descriptor("own=1")
	own.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 10, Unit: envoytype.RateLimitUnit_HOUR}
	require.Equal(t, uint32(4), r.ask(6, own).Statuses[0].LimitRemaining)
	own.IsNegativeHits = true
	require.Equal(t, uint32(9), r.ask(5, own).Statuses[0].LimitRemaining)

	_, err := r.client.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{back(1, "log=1")}})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "descriptors[0]: is_negative_hits")
}

// Under the switch of an operator too, and with a ban there is nothing to give back.
func TestNegativeHitsBehindTheSwitch(t *testing.T) {
	f, err := config.Parse("f", []byte(refundFile))
	require.NoError(t, err)
	s, err := service.New(f, service.Options{Log: slog.New(slog.DiscardHandler), Wrap: func(_ string, l algo.Limiter) algo.Limiter { return admin.Control(l) }})
	require.NoError(t, err)
	ask := func(n uint32, d *ratelimit.RateLimitDescriptor) uint32 {
		resp, err := s.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "d", HitsAddend: n, Descriptors: []*ratelimit.RateLimitDescriptor{d}})
		require.NoError(t, err)
		return resp.Statuses[0].LimitRemaining
	}
	require.Equal(t, uint32(2), ask(8, descriptor("window=1")))
	require.Equal(t, uint32(6), ask(0, back(4, "window=1")))
	_, err = s.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{back(1, "log=1")}})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	nothing := back(1, "bucket=1")
	nothing.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{Unit: envoytype.RateLimitUnit_HOUR}
	require.Zero(t, ask(0, nothing))
}

// A limit that is faster than Redis can count is the fastest that it can count: an error would
// let the request pass.
func TestOverridesTooFast(t *testing.T) {
	for name, r := range map[string]*rig{
		"here": newRig(t, refundFile, nil), "on Redis": newRig(t, refundFile, openStore(t, redistest.Start(t))),
	} {
		for unit := range envoytype.RateLimitUnit_name {
			if unit == int32(envoytype.RateLimitUnit_UNKNOWN) {
				continue
			}
			d := descriptor("x=1")
			d.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: math.MaxUint32, Unit: envoytype.RateLimitUnit(unit)}
			require.Equal(t, under, r.ask(0, d).OverallCode, "%s: %d", name, unit)
			admitted := 0
			for range 3 {
				if r.ask(math.MaxUint32, d).OverallCode == under {
					admitted++
				}
			}
			require.LessOrEqual(t, admitted, 1, "%s: %d", name, unit)
		}
	}
}
