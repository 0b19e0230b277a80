package trees

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
)

// tree grows a tree of at most depth compositions above each other.
func (g *grove) tree(depth int) node {
	if depth == 0 || g.rnd.IntN(6) == 0 {
		return g.leaf()
	}
	inner := g.tree(depth - 1)
	kind := []string{"all", "shadow", "switch", "by key", "unlimited for b", "ban", "failures only", "first", "forwards"}[g.rnd.IntN(9)]
	g.kinds[kind]++
	none := func(string, int64, counts) []counts { return []counts{g.none()} }
	switch kind {
	case "all":
		return g.all(inner, g.tree(depth-1), g.tree(depth-1))
	case "shadow":
		return node{algo.Shadow(inner.Limiter), func(key string, n int64, c counts) []counts { return append(inner.may(key, n, c), g.none()) }}
	case "switch":
		s := algo.NewSwitch(inner.Limiter)
		g.switches = append(g.switches, s)
		return node{s, func(key string, n int64, c counts) []counts {
			if s.IsOn() {
				return inner.may(key, n, c)
			}
			return none(key, n, c)
		}}
	case "by key":
		return g.byKey(inner, g.tree(depth-1))
	case "unlimited for b":
		return g.byKey(inner, node{algo.Unlimited(), none})
	case "ban":
		return node{algo.Must(guard.NewBan(inner.Limiter, algo.PerDay(4), 1e9, 60e9)), inner.may}
	case "failures only":
		g.failures = true
		return node{guard.FailuresOnly(inner.Limiter), none}
	case "first":
		credits := g.add(g.credits)
		return node{g.First(inner.Limiter, g.leaves[credits]), func(key string, n int64, c counts) []counts {
			paid := g.of(credits, c[credits])
			return sums(inner.may(key, n-c[credits], c), []counts{paid})
		}}
	}
	return node{&forwards{inner.Limiter}, inner.may}
}

func (g *grove) all(nodes ...node) node {
	var limiters []algo.Limiter
	for _, n := range nodes {
		limiters = append(limiters, n.Limiter)
	}
	return node{algo.All(limiters...), func(key string, n int64, c counts) []counts {
		may := []counts{g.none()}
		for _, one := range nodes {
			may = sums(may, one.may(key, n, c))
		}
		return may
	}}
}

func (g *grove) byKey(a, b node) node {
	return node{algo.ByKey(func(_ context.Context, key string) algo.Limiter {
		if key == g.keys[0] {
			return a.Limiter
		}
		return b.Limiter
	}, a.Limiter, b.Limiter), func(key string, n int64, c counts) []counts {
		if key == g.keys[0] {
			return a.may(key, n, c)
		}
		return b.may(key, n, c)
	}}
}

// forwards is a user's wrapper.
type forwards struct{ inner algo.Limiter }

func (f *forwards) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	return f.inner.Acquire(ctx, key, n)
}
func (f *forwards) Unwrap() []algo.Limiter { return []algo.Limiter{f.inner} }

func sums(a, b []counts) (all []counts) {
	for _, x := range a {
		for _, y := range b {
			z := slices.Clone(x)
			for i := range z {
				z[i] += y[i]
			}
			if !slices.ContainsFunc(all, func(c counts) bool { return slices.Equal(c, z) }) {
				all = append(all, z)
			}
		}
	}
	return all
}

func (g *grove) none() counts { return make(counts, len(g.leaves)) }

func (g *grove) of(leaf int, n int64) counts {
	c := g.none()
	c[leaf] = n
	return c
}

// leaf returns a leaf, often one that the tree has already.
func (g *grove) leaf() node {
	if len(g.shared) > 0 && g.rnd.IntN(3) == 0 {
		return g.shared[g.rnd.IntN(len(g.shared))]
	}
	var i int
	switch kind, quota := g.rnd.IntN(len(g.Kinds)+2), 12+g.rnd.Int64N(12); kind {
	case 0:
		g.kinds["credits"]++
		i = g.add(g.credits)
	case 1:
		g.kinds["slots"]++
		i = g.add(func(nth int) algo.Limiter { return g.Slots(nth, quota) })
		g.slots = append(g.slots, i)
	default:
		g.kinds[fmt.Sprint("kind ", kind)]++
		i = g.add(func(nth int) algo.Limiter { return g.Kinds[kind-2](nth, quota) })
	}
	leaf := node{g.leaves[i], func(_ string, n int64, _ counts) []counts { return []counts{g.of(i, n)} }}
	g.shared = append(g.shared, leaf)
	return leaf
}

func (g *grove) add(make func(nth int) algo.Limiter) int {
	g.leaves = append(g.leaves, make(len(g.leaves)))
	return len(g.leaves) - 1
}

func (g *grove) credits(nth int) algo.Limiter {
	return g.Credits(nth, map[string]int64{g.keys[0]: g.rnd.Int64N(9), g.keys[1]: g.rnd.Int64N(9)})
}
