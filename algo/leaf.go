package algo

import (
	"context"
	"fmt"
	"reflect"
)

// leaf is one limit that a decision has to pass, after the wrappers that only
// choose a limiter have chosen and compositions have been taken apart.
type leaf struct {
	Request
	owner int // the index of the request that it belongs to
}

// usualLeaves is how many need no allocation for their list.
const usualLeaves = 8

// chooser is a wrapper that hands each request to one limiter or another and
// has no part in the decision itself.
type chooser interface {
	choose(ctx context.Context, key string) (Limiter, error)
}

// resolve follows choosers to the limiter that decides.
func resolve(ctx context.Context, l Limiter, key string) (Limiter, error) {
	for {
		c, ok := l.(chooser)
		if !ok {
			return l, nil
		}
		var err error
		if l, err = c.choose(ctx, key); err != nil {
			return nil, err
		}
	}
}

// flatten appends the leaves of reqs to leaves.
func flatten(ctx context.Context, leaves []leaf, reqs []Request) ([]leaf, error) {
	for i := range reqs {
		var err error
		leaves, err = grow(ctx, leaves, reqs[i].Limiter, &reqs[i], i)
		if err != nil {
			return nil, partError(len(reqs), &leaf{reqs[i], i}, err)
		}
	}
	return leaves, nil
}

// grow appends the leaves of l, under the key and for the units of from. They
// are written in place: a leaf that is put together and then copied costs
// three times as much.
func grow(ctx context.Context, leaves []leaf, l Limiter, from *Request, owner int) (_ []leaf, err error) {
	if l, err = resolve(ctx, l, from.Key); err != nil {
		return nil, err
	}
	several, ok := l.(*all)
	if !ok {
		leaves = append(leaves, leaf{})
		last := &leaves[len(leaves)-1]
		last.Limiter, last.Key, last.N, last.owner = l, from.Key, from.N, owner
		return leaves, nil
	}
	for _, one := range several.limiters {
		if leaves, err = grow(ctx, leaves, one, from, owner); err != nil {
			return nil, err
		}
	}
	return leaves, nil
}

// batchEnd returns the end of the run of leaves that starts at from and is
// decided in one step.
func batchEnd(leaves []leaf, from int) int {
	end := from + 1
	if b, ok := leaves[from].Limiter.(Batcher); ok {
		for end < len(leaves) && b.Batches(leaves[from].Request, leaves[end].Request) {
			end++
		}
	}
	return end
}

// requests copies what a Batcher is handed: a list that it could keep would
// cost every caller of AcquireAll an allocation.
func requests(leaves []leaf) []Request {
	reqs := make([]Request, len(leaves))
	for i := range leaves {
		reqs[i] = leaves[i].Request
	}
	return reqs
}

// before is how many units leaves[from:to] ask of the same limiter and key as l.
func before(leaves []leaf, l *leaf) (n int64) {
	for i := range leaves {
		if alike(&leaves[i], l) {
			n = addSaturated(n, leaves[i].N)
		}
	}
	return n
}

// alike reports whether two leaves are for the same limiter and key.
func alike(a, b *leaf) bool { return a.Key == b.Key && same(a.Limiter, b.Limiter) }

// same compares limiters; values that cannot be compared are never the same.
func same(a, b Limiter) bool {
	t := reflect.TypeOf(a)
	if t != reflect.TypeOf(b) {
		return false
	}
	if t.Kind() == reflect.Pointer {
		return a == b
	}
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// mustLimiter panics at wiring time where a limiter is missing.
func mustLimiter(l Limiter, what string) {
	if l == nil {
		panic(fmt.Sprintf("algo: %s: the limiter is nil", what))
	}
}
