package algo_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

var bg = context.Background()

var (
	must, peek, acquireAll, bucket   = fakes.Acquire, fakes.Look, fakes.AcquireAll, fakes.Bucket
	saying, broken, errBroken, group = fakes.Saying, fakes.Broken, fakes.ErrBroken, fakes.Group
)

type limiterFunc = fakes.Func

// foreign hides that a limiter belongs to the package, and records its calls.
type foreign struct {
	algo.Limiter
	mu      sync.Mutex
	charges []int64 // the n of every admission above 0
	denials []int64
}

func (f *foreign) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	lease, err := f.Limiter.Acquire(ctx, key, n)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil || n == 0:
	case lease.Allowed:
		f.charges = append(f.charges, n)
	default:
		f.denials = append(f.denials, n)
	}
	return lease, err
}

// Peek looks at the limiter.
func (f *foreign) Peek(ctx context.Context, key string, n int64) (algo.Decision, error) {
	return algo.Peek(ctx, f.Limiter, key, n)
}

// recorder admits everything and records how its leases end.
type recorder struct {
	name string
	log  *[]string
}

func (r recorder) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	d := algo.Decision{Allowed: true, Limit: 10, Remaining: 10}
	return algo.NewLease(d, r, algo.Handle{Key: key, N: n}), nil
}

func (r recorder) Release(_ algo.Handle, o algo.Outcome) {
	*r.log = append(*r.log, r.name+" "+o.String())
}

func (r recorder) Settle(_ algo.Handle, actual int64) {
	*r.log = append(*r.log, r.name+" settled")
	_ = actual
}

// store is a backend with a batch operation, on one machine: a mutex makes the
// step atomic.
type store struct {
	mu      sync.Mutex
	batches [][]int64 // the costs of each batch
	asked   [][]int64
	singles int
	err     error
}

// shared is one limit of a store.
type shared struct {
	store *store
	limit algo.Limiter
}

var _ algo.Batcher = (*shared)(nil)

func (s *store) limiter(r algo.Rate, opts ...algo.Option) *shared {
	return &shared{s, bucket(r, opts...)}
}

func (s *shared) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.singles++
	return s.limit.Acquire(ctx, key, n)
}

func (s *shared) Batches(_, b algo.Request) bool {
	other, ok := b.Limiter.(*shared)
	return ok && other.store == s.store
}

func (s *shared) AcquireBatch(ctx context.Context, reqs []algo.Request, leases []algo.Lease) error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.batches = append(s.store.batches, costs(reqs))
	if s.store.err != nil {
		return s.store.err
	}
	return s.run(ctx, reqs, leases, true)
}

func (s *shared) PeekBatch(ctx context.Context, reqs []algo.Request, leases []algo.Lease) error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.asked = append(s.store.asked, costs(reqs))
	if s.store.err != nil {
		return s.store.err
	}
	return s.run(ctx, reqs, leases, false)
}

// run decides a batch: it charges one by one, and takes all back unless all
// are admitted. Then each is asked for the sum up to it.
func (s *shared) run(ctx context.Context, reqs []algo.Request, leases []algo.Lease, charge bool) error {
	admitted := true
	for i, r := range reqs {
		lease, err := r.Limiter.(*shared).limit.Acquire(ctx, r.Key, r.N)
		if err != nil {
			return err
		}
		leases[i] = lease
		admitted = admitted && lease.Allowed
	}
	if admitted && charge {
		return nil
	}
	for i := range leases {
		leases[i].Release(algo.Canceled)
	}
	for i, r := range reqs {
		sum := int64(0)
		for _, earlier := range reqs[:i+1] {
			if earlier.Limiter == r.Limiter && earlier.Key == r.Key {
				sum += earlier.N
			}
		}
		lease, err := r.Limiter.(*shared).limit.Acquire(ctx, r.Key, sum)
		if err != nil {
			return err
		}
		leases[i] = algo.NewLease(lease.Decision, nil, algo.Handle{})
		lease.Release(algo.Canceled)
	}
	return nil
}

func costs(reqs []algo.Request) (ns []int64) {
	for _, r := range reqs {
		ns = append(ns, r.N)
	}
	return ns
}

// in runs each case as a subtest.
func in[C any](t *testing.T, cases map[string]C, run func(t *testing.T, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { run(t, c) })
	}
}

// drain takes all remaining units, one by one.
func drain(t require.TestingT, l algo.Limiter, key string) (n int64) {
	for ; n < 1000; n++ {
		lease := must(t, l, key, 1)
		if !lease.Allowed || lease.Delay > 0 {
			lease.Release(algo.Canceled)
			return n
		}
	}
	require.Fail(t, "no end")
	return n
}

func drainAll(t require.TestingT, l algo.Limiter, key string) int64 {
	n := peek(t, l, key).Remaining
	require.True(t, must(t, l, key, n).Allowed)
	return n
}

// listed is l, and other for some keys.
func listed(l, other algo.Limiter, keys ...string) algo.Limiter {
	return algo.ByKey(func(_ context.Context, key string) algo.Limiter {
		if slices.Contains(keys, key) {
			return other
		}
		return l
	}, l, other)
}
