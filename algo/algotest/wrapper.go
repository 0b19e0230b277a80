package algotest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/keystore"
)

// RunWrapper checks a limiter over others. wrap makes the wrapper with a configuration that changes
// nothing; each call of over makes a new limiter in the same state. In virtual time RunWrapper
// makes steps calls to the wrapper and to a twin of the limiter beneath it: every Decision, of each
// Part too, Peek, Description and ban must be equal, and so must the remaining units after each
// Settle, of the lease or a part, and Release.
//
// The requirements:
//
//  1. It has Unwrap, see [algo.Wrapper].
//  2. Acquire forwards ctx, key and n, or the type has its own Peek and About.
//  3. Peek and n = 0 charge nothing.
//  4. It returns the inner lease, or one whose Releaser forwards Release, Settle and
//     AwaitClient.
//  5. It calls no callback under a lock.
//  6. It denies with the Reason that says who is to blame.
//  7. A type that embeds a limiter and has its own Acquire has its own Peek, About and
//     Unwrap.
//  8. It resolves once for each Acquire ([algo.Resolve]), and keeps the result.
func RunWrapper(t *testing.T, wrap func(algo.Limiter) algo.Limiter, steps int, over ...func() algo.Limiter) {
	t.Helper()
	for i, make := range over {
		synctest.Test(t, func(t *testing.T) {
			var l, twin algo.Limiter
			keystore.Alike(func() { l, twin = make(), make() })
			w := wrap(l)
			for one := range algo.Walk(l) {
				_, several := one.(algo.Wrapper) // All of an All counts its limits one by one
				require.True(t, several || slices.Contains(slices.Collect(algo.Walk(w)), one), "%d: Walk finds %T beneath %T", i, one, w)
			}
			c := twins{t: t, limiters: [2]algo.Limiter{w, twin}, parts: limits(w) == limits(twin), rnd: rand.New(rand.NewPCG(uint64(i), 1))}
			for range steps {
				c.step()
			}
			c.end()
		})
	}
}

// twins are two limiters whose answers must be equal.
type twins struct {
	t        *testing.T
	limiters [2]algo.Limiter
	parts    bool // the wrapper adds no limit
	rnd      *rand.Rand
	held     [][2]algo.Lease
}

// both requires that f has the same result for both.
func (c *twins) both(f func(i int) (any, error)) {
	a, err := f(0)
	b, twinErr := f(1)
	require.Equal(c.t, twinErr == nil, err == nil, "%T: %v and %v", c.limiters[0], err, twinErr)
	require.Equal(c.t, b, a, "%T over %T", c.limiters[0], c.limiters[1])
}

func (c *twins) step() {
	key, n := []string{"", "a", "b"}[c.rnd.IntN(3)], c.rnd.Int64N(6)
	switch c.rnd.IntN(6) {
	case 0:
		time.Sleep(time.Duration(c.rnd.Int64N(int64(20 * time.Second))))
	case 1, 2:
		var leases [2]algo.Lease
		c.both(func(i int) (_ any, err error) {
			leases[i], err = c.limiters[i].Acquire(ctx, key, n-1+n/5)
			return leases[i].Decision, err
		})
		if c.alike(&leases) {
			c.both(func(i int) (any, error) { return leases[i].Parts(), nil })
		}
		c.held = append(c.held, leases)
	case 3:
		c.both(func(i int) (any, error) { return algo.Peek(ctx, c.limiters[i], key, 2*n) })
	case 4:
		c.settle(n)
	case 5:
		c.release()
	}
	c.both(func(i int) (any, error) { return algo.Peek(ctx, c.limiters[i], key, 0) })
	c.both(func(i int) (any, error) { return algo.About(c.limiters[i]), nil })
	c.both(func(i int) (any, error) { return banned(c.limiters[i], key), nil })
}

// limits returns the number of limiters beneath l that decide by themselves.
func limits(l algo.Limiter) (n int) {
	for one := range algo.Walk(l) {
		if _, wraps := one.(algo.Wrapper); !wraps {
			n++
		}
	}
	return n
}

// alike reports whether two leases must have the same parts. A composition hides those beneath it.
func (c *twins) alike(leases *[2]algo.Lease) bool {
	return c.parts && len(leases[0].Parts()) == len(leases[1].Parts())
}

// banned returns the longest ban of a key beneath l.
func banned(l algo.Limiter, key string) (d time.Duration) {
	for one := range algo.Walk(l) {
		if b, ok := one.(interface{ Banned(string) time.Duration }); ok {
			d = max(d, b.Banned(key))
		}
	}
	return d
}

func (c *twins) settle(n int64) {
	if len(c.held) > 0 {
		leases := &c.held[c.rnd.IntN(len(c.held))]
		part := c.rnd.IntN(4) == 0 && c.alike(leases)
		for i := range leases {
			if part {
				leases[i].Part(0).Settle(n)
			} else {
				leases[i].Settle(n)
			}
		}
	}
}

// release ends a lease, in any way.
func (c *twins) release() {
	if len(c.held) == 0 {
		return
	}
	k := c.rnd.IntN(len(c.held))
	o := []algo.Outcome{algo.Succeeded, algo.Failed, algo.Canceled, algo.Failed | algo.Untimed}[c.rnd.IntN(4)]
	for i := range c.held[k] {
		c.held[k][i].Release(o)
	}
	c.held = slices.Delete(c.held, k, k+1)
}

func (c *twins) end() {
	for len(c.held) > 0 {
		c.release()
	}
	for _, key := range []string{"", "a", "b"} {
		c.both(func(i int) (any, error) { return algo.Peek(ctx, c.limiters[i], key, 1) })
	}
}
