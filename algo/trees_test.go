package algo_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/internal/cases"
)

// TestTrees: whatever limits are composed of, a denial charges nothing anywhere, what is
// canceled comes back everywhere, also after settlements and while parts are switched off
// and on, and no leaf holds more than its limit and what was settled beyond it.
func TestTrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kinds := map[int]int{}
		for seed := range uint64(max(cases.Count(500, 40_000), 100)) {
			g := &grove{rnd: rand.New(rand.NewPCG(seed, 3)), kinds: kinds}
			root := g.tree(3)
			full := g.left(t)
			for range 40 {
				g.step(t, root)
			}
			for _, s := range g.switches {
				s.On()
			}
			for i := range g.held {
				g.held[i].Release(algo.Canceled)
			}
			require.Equal(t, full, g.left(t), "seed %d", seed)
		}
		require.Len(t, kinds, countOfKinds)
	})
}

const countOfKinds = 14

// grove is a tree of limiters over leaves, some of which it has more than once.
type grove struct {
	rnd      *rand.Rand
	kinds    map[int]int
	leaves   []algo.Limiter
	switches []*algo.Switch
	held     []*algo.Lease
}

func (g *grove) tree(depth int) algo.Limiter {
	if depth == 0 || g.rnd.IntN(6) == 0 {
		return g.leaf()
	}
	kind := 5 + g.rnd.IntN(countOfKinds-5)
	g.kinds[kind]++
	one := func() algo.Limiter { return g.tree(depth - 1) }
	switch kind {
	case 5:
		return algo.All(one(), one(), one())
	case 6:
		return algo.Shadow(one())
	case 7:
		s := algo.NewSwitch(one())
		g.switches = append(g.switches, s)
		return s
	case 8:
		a, b := one(), one()
		return algo.ByKey(func(_ context.Context, key string) algo.Limiter {
			if key == "a" {
				return a
			}
			return b
		}, a, b)
	case 9:
		return listed(one(), algo.Unlimited(), "b")
	case 10:
		return algo.Must(guard.NewBan(one(), algo.PerDay(4), time.Second, time.Minute))
	case 11:
		return guard.FailuresOnly(one())
	case 12:
		return prepaid.First(one(), g.credits())
	}
	return &forwards{one()}
}

// leaf returns a leaf, often one that the tree has already.
func (g *grove) leaf() algo.Limiter {
	if n := len(g.leaves); n > 0 && g.rnd.IntN(3) == 0 {
		return g.leaves[g.rnd.IntN(n)]
	}
	kind := g.rnd.IntN(5)
	g.kinds[kind]++
	var l algo.Limiter
	switch quota := 12 + g.rnd.Int64N(12); kind {
	case 0:
		l = algo.Must(algo.NewFixedWindow(algo.PerDay(quota)))
	case 1:
		l = bucket(algo.PerDay(quota))
	case 2:
		return g.credits()
	case 3:
		l = algo.Must(adaptive.PerKey(int(quota)))
	case 4:
		l = algo.Unlimited()
	}
	g.leaves = append(g.leaves, l)
	return l
}

func (g *grove) credits() *prepaid.Credits {
	c := prepaid.NewCredits()
	for _, key := range []string{"a", "b"} {
		_ = c.TopUp(key, g.rnd.Int64N(9))
	}
	g.leaves = append(g.leaves, c)
	return c
}

// left is what each leaf has left.
func (g *grove) left(t *testing.T) (all []int64) {
	for _, l := range g.leaves {
		for _, key := range []string{"a", "b"} {
			if c, ok := l.(*prepaid.Credits); ok {
				all = append(all, c.Balance(key))
				continue
			}
			d := must(t, l, key, 0).Decision
			all = append(all, d.Remaining, int64(d.ResetAfter))
		}
	}
	return all
}

func (g *grove) step(t *testing.T, root algo.Limiter) {
	key, n := []string{"a", "b"}[g.rnd.IntN(2)], g.rnd.Int64N(5)
	before := g.left(t)
	switch op := g.rnd.IntN(8); {
	case op == 0 && len(g.switches) > 0:
		s := g.switches[g.rnd.IntN(len(g.switches))]
		if s.IsOn() {
			s.Off()
		} else {
			s.On()
		}
	case op == 1:
		_, err := algo.Peek(bg, root, key, n)
		require.NoError(t, err)
		require.Equal(t, before, g.left(t), "a look charges nothing")
	case op == 2 && len(g.held) > 0:
		g.held[g.rnd.IntN(len(g.held))].Settle(n % 2)
	case op == 3 && len(g.held) > 0:
		g.held[g.rnd.IntN(len(g.held))].Part(g.rnd.IntN(3)).Settle(n % 2)
	case op == 4:
		lease, units, err := meter.AtMost(bg, root, key, n+1)
		require.NoError(t, err)
		g.keep(t, lease, units > 0, before)
	case op == 5:
		lease := must(t, root, key, n)
		lease.Release(algo.Canceled)
		require.Equal(t, before, g.left(t), "what is canceled comes back")
	default:
		lease := must(t, root, key, n)
		g.keep(t, lease, lease.Allowed, before)
	}
}

// keep holds an admission; a denial must have charged nothing.
func (g *grove) keep(t *testing.T, lease algo.Lease, allowed bool, before []int64) {
	if allowed {
		held := lease
		g.held = append(g.held, &held)
	} else {
		require.Equal(t, before, g.left(t), "a denial charges nothing")
	}
}
