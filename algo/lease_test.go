package algo_test

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/algo"
)

// A canceled admission is refunded as far as it still weighs.
func ExampleLease_Release() {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
	lease, _ := l.Acquire(context.Background(), "alice", 2)
	fmt.Println(lease.Remaining)
	lease.Release(algo.Canceled)

	lease, _ = l.Acquire(context.Background(), "alice", 0) // a peek
	fmt.Println(lease.Remaining)
	// Output:
	// 3
	// 5
}

// The true cost is known only at the end: reserve an estimate, then settle.
func ExampleLease_Settle() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(100_000)))
	lease, _ := tokens.Acquire(context.Background(), "alice", 4000)
	defer lease.Release(algo.Succeeded)
	lease.Settle(1500)

	peek, _ := tokens.Acquire(context.Background(), "alice", 0)
	fmt.Println(peek.Remaining)
	// Output: 98500
}

// turnstile is a custom limiter: one request at a time.
type turnstile struct{ free chan struct{} }

func (t *turnstile) Acquire(_ context.Context, key string, n int64) (lease algo.Lease, err error) {
	if n != 1 {
		return lease, fmt.Errorf("%w: n is %d, want 1", algo.ErrCost, n)
	}
	select {
	case <-t.free:
		return algo.NewLease(algo.Decision{Allowed: true, Limit: 1}, t, algo.Handle{Key: key, N: n}), nil
	default:
		return algo.NewLease(algo.Decision{Reason: algo.Overload, Limit: 1}, nil, algo.Handle{}), nil
	}
}

func (t *turnstile) Release(algo.Handle, algo.Outcome) { t.free <- struct{}{} }
func (t *turnstile) Settle(algo.Handle, int64)         {}

func ExampleNewLease() {
	t := &turnstile{free: make(chan struct{}, 1)}
	t.free <- struct{}{}

	first, _ := t.Acquire(context.Background(), "ann", 1)
	second, _ := t.Acquire(context.Background(), "bob", 1)
	fmt.Println(first.Allowed, second.Allowed, second.Reason)
	first.Release(algo.Succeeded)
	third, _ := t.Acquire(context.Background(), "bob", 1)
	fmt.Println(third.Allowed)
	// Output:
	// true false overload
	// true
}

// tap is a custom limiter on a path where copying a lease is noticeable.
type tap struct{ flowing int64 }

func (t *tap) Acquire(_ context.Context, key string, n int64) (lease algo.Lease, err error) {
	t.flowing += n
	lease.Allowed = true
	h := algo.FillLease(&lease, t)
	h.Key, h.N = key, n
	return lease, nil
}

func (t *tap) Release(h algo.Handle, _ algo.Outcome) { t.flowing -= h.N }
func (t *tap) Settle(h algo.Handle, actual int64)    { t.flowing += actual - h.N }

func ExampleFillLease() {
	t := new(tap)
	lease, _ := t.Acquire(context.Background(), "ann", 3)
	lease.Settle(5)
	fmt.Println(t.flowing)
	lease.Release(algo.Succeeded)
	fmt.Println(t.flowing)
	// Output:
	// 5
	// 0
}

// A limiter over others goes on with the charge of a lease.
func ExampleLease_Charge() {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	lease := algo.Must(l.Acquire(context.Background(), "alice", 3))
	fmt.Println(lease.Charge())
	lease.Settle(5)
	fmt.Println(lease.Charge())
	lease.Release(algo.Succeeded)
	fmt.Println(lease.Charge())
	// Output:
	// alice 3 true
	// alice 5 true
	//  0 false
}
