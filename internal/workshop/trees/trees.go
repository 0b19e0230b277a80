// Package trees tests limits within random compositions, in this process and on Redis, against
// exact counts.
package trees

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
)

// Leaves makes the limits of a tree, the nth of it. No unit of theirs comes back by time alone,
// and a debt of theirs is paid by refunds, as that of a sliding log is not.
type Leaves struct {
	Kinds   []func(nth int, quota int64) algo.Limiter // limits over time
	Slots   func(nth int, quota int64) algo.Limiter
	Credits func(nth int, balances map[string]int64) algo.Limiter
	First   func(plan, credits algo.Limiter) algo.Limiter
}

// Run makes trees. Whatever limits are composed of, an admission charges all limits that it names
// or, behind a trial, none; a denial and a look charge nothing anywhere; what is canceled comes
// back exactly, also after settlements and while parts are switched off and on; slots are free
// after any end. It returns the number of operations.
func Run(t *testing.T, trees int, leaves Leaves) (operations int) {
	kinds := map[string]int{}
	for seed := range uint64(trees) {
		g := &grove{T: t, Leaves: leaves, rnd: rand.New(rand.NewPCG(seed, 3)), kinds: kinds, exact: true,
			keys: [2]string{fmt.Sprint("a", seed), fmt.Sprint("b", seed)}, says: fmt.Sprint("seed ", seed)}
		root := g.tree(3)
		full := g.left()
		for range 40 {
			g.step(root)
			operations++
		}
		for i := range g.held {
			g.held[i].lease.Release(algo.Canceled)
		}
		if !g.ended {
			require.Equal(t, full, g.left(), g.says)
		}
	}
	if trees >= 50 {
		require.Len(t, kinds, len(leaves.Kinds)+11)
	}
	return operations
}

// counts are units of each leaf.
type counts []int64

// node is a limiter of a tree. may returns what an admission of n units may have charged, given
// what it has.
type node struct {
	algo.Limiter
	may func(key string, n int64, charged counts) []counts
}

// grove is a tree of limiters over leaves, some of which it has more than once.
type grove struct {
	*testing.T
	Leaves
	rnd      *rand.Rand
	kinds    map[string]int
	keys     [2]string
	says     string
	leaves   []algo.Limiter
	slots    []int // leaves that are free again after any end
	shared   []node
	switches []*algo.Switch
	held     []*admission
	exact    bool // nothing has left a debt, which Remaining does not show
	ended    bool // some work has ended, and stays charged
	failures bool // there is a FailuresOnly
}

type admission struct {
	lease   algo.Lease
	key     int
	charged counts
}

// left is what each leaf has left for each key.
func (g *grove) left() (left [2]counts) {
	var looks []algo.Request
	for _, key := range g.keys {
		for _, l := range g.leaves {
			looks = append(looks, algo.Request{Limiter: l, Key: key})
		}
	}
	lease, err := algo.AcquireAll(context.Background(), looks...)
	require.NoError(g, err, g.says)
	defer lease.Release(algo.Canceled)
	for k := range left {
		for i := range g.leaves {
			left[k] = append(left[k], lease.Part(k*len(g.leaves)+i).Remaining)
		}
	}
	return left
}

// step does something, and compares what it charged.
func (g *grove) step(root node) {
	before, k, n, ctx := g.left(), g.rnd.IntN(2), g.rnd.Int64N(5), context.Background()
	key := g.keys[k]
	switch op := g.rnd.IntN(10); {
	case op == 0 && len(g.switches) > 0:
		if s := g.switches[g.rnd.IntN(len(g.switches))]; s.IsOn() {
			s.Off()
		} else {
			s.On()
		}
	case op == 1:
		_, err := algo.Peek(ctx, root.Limiter, key, n)
		require.NoError(g, err)
		g.charged(before, k)
	case op == 2 && len(g.held) > 0:
		g.settle(before, n)
	case op == 3:
		lease, units, err := meter.AtMost(ctx, root.Limiter, key, n+1)
		require.NoError(g, err)
		g.keep(root, before, admission{lease, k, nil}, units)
	case op == 4 && len(g.held) > 0:
		g.release(before)
	case op == 5:
		g.meter(ctx, root, before, k, n)
	default:
		lease, err := root.Acquire(ctx, key, n)
		require.NoError(g, err)
		g.keep(root, before, admission{lease, k, nil}, n)
	}
}

// charged is what has been charged to a key since before, and nothing to the other.
func (g *grove) charged(before [2]counts, k int) (c counts) {
	now := g.left()
	for i, left := range now[k] {
		c = append(c, before[k][i]-left)
	}
	require.Equal(g, before[1-k], now[1-k], "%s: the other key", g.says)
	return c
}

// keep holds an admission; a denial must have charged nothing.
func (g *grove) keep(root node, before [2]counts, a admission, n int64) {
	a.charged = g.charged(before, a.key)
	if !a.lease.Allowed {
		require.Equal(g, g.none(), a.charged, "%s: a denial charges nothing", g.says)
		return
	}
	if g.exact {
		require.Contains(g, root.may(g.keys[a.key], n, a.charged), a.charged, "%s: all or none of %d units", g.says, n)
	}
	g.held = append(g.held, &a)
}

// settle settles an admission, or a part of it, in half of the cases upwards.
func (g *grove) settle(before [2]counts, n int64) {
	a := g.held[g.rnd.IntN(len(g.held))]
	if g.rnd.IntN(2) == 0 {
		n = 0
	}
	lease := &a.lease
	if g.rnd.IntN(2) == 0 {
		lease = lease.Part(g.rnd.IntN(3))
	}
	g.exact = g.exact && n == 0
	lease.Settle(n)
	a.charged = sums([]counts{a.charged}, []counts{g.charged(before, a.key)})[0]
}

// release ends an admission, in any way.
func (g *grove) release(before [2]counts) {
	i := g.rnd.IntN(len(g.held))
	a := g.held[i]
	g.held = slices.Delete(g.held, i, i+1)
	o := []algo.Outcome{algo.Canceled, algo.Canceled, algo.Succeeded, algo.Failed, algo.Failed | algo.Untimed}[g.rnd.IntN(5)]
	a.lease.Release(o)
	charged := g.charged(before, a.key)
	g.ended = g.ended || o != algo.Canceled
	if g.exact = g.exact && (!g.failures || o.Result() != algo.Failed); !g.exact { // a failure may be debt
		return
	}
	for leaf, was := range a.charged {
		switch {
		case o == algo.Canceled || slices.Contains(g.slots, leaf) && !g.failures:
			require.Equal(g, -was, charged[leaf], "%s: %v returns all", g.says, o)
		case !g.failures || o == algo.Succeeded && !slices.Contains(g.slots, leaf):
			require.Zero(g, charged[leaf], "%s: %v stays charged", g.says, o)
		}
	}
}

// meter charges what is used and no more.
func (g *grove) meter(ctx context.Context, root node, before [2]counts, k int, n int64) {
	if len(g.slots) > 0 || g.failures {
		return // they are no limits over time
	}
	m, err := meter.Start(ctx, root.Limiter, g.keys[k], 1, 3)
	require.NoError(g, err)
	used := int64(0)
	for range n {
		if d, err := m.Reserve(ctx, 1); m.Allowed && err == nil && d.Allowed {
			m.Use(1)
			used++
		}
	}
	m.Close()
	g.ended = g.ended || used > 0
	for _, c := range g.charged(before, k) {
		require.LessOrEqual(g, c, used*9, "%s: %d used", g.says, used)
	}
}
