package service

import (
	"context"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// closer is a limiter of a store.
type closer struct{ closed int }

func (*closer) Acquire(context.Context, string, int64) (lease algo.Lease, err error) {
	return lease, nil
}

func (c *closer) Close() error { c.closed++; return nil }

// A limit that was forgotten is closed as soon as no request uses it, and not before: a closed
// one decides nothing, and one that is kept takes some 20 kB.
func TestOverridesAreClosedAfterUse(t *testing.T) {
	o := newOverrides(nil)
	get := func(n uint32) *override {
		l, err := o.get(&ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: envoytype.RateLimitUnit_HOUR})
		require.NoError(t, err)
		return l
	}
	done := func(l *override) { o.done([]asked{{}, {brought: l}}) }
	held, idle := get(1), get(2)
	one, two := new(closer), new(closer)
	held.limiter, idle.limiter = one, two
	require.Same(t, held, get(1))
	done(held)
	done(idle)
	for n := range uint32(mostOverrides) {
		done(get(n + 3))
	}
	require.Equal(t, 0, one.closed, "a request uses it")
	require.Equal(t, 1, two.closed)
	require.NotSame(t, held, get(1))
	done(held)
	require.Equal(t, 1, one.closed)
	require.Len(t, o.made, mostOverrides)
}
