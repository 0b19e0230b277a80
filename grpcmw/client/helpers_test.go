package client_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limiter is a limiter that is a function, and counts what is released.
type limiter struct {
	answer func(key string, n int64) (algo.Decision, error)

	mu       sync.Mutex
	inFlight int64
	acquired int
	outcomes []algo.Outcome
}

func always(d algo.Decision) *limiter {
	return &limiter{answer: func(string, int64) (algo.Decision, error) { return d, nil }}
}

func admitting() *limiter { return always(algo.Decision{Allowed: true}) }

func failing(err error) *limiter {
	return &limiter{answer: func(string, int64) (algo.Decision, error) { return algo.Decision{}, err }}
}

func (l *limiter) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	d, err := l.answer(key, n)
	if err != nil || !d.Allowed || n == 0 {
		return algo.NewLease(d, nil, algo.Handle{}), err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight, l.acquired = l.inFlight+n, l.acquired+1
	return algo.NewLease(d, l, algo.Handle{Key: key, N: n}), nil
}

func (l *limiter) Release(h algo.Handle, o algo.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight, l.outcomes = l.inFlight-h.N, append(l.outcomes, o)
}

func (l *limiter) Settle(algo.Handle, int64) {}

// requireIdle waits until nothing is in flight after that many calls.
func (l *limiter) requireIdle(t *testing.T, calls int) {
	t.Helper()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.inFlight == 0 && l.acquired == calls && len(l.outcomes) == calls
	}, 10*time.Second, time.Millisecond)
}

// A few decisions.
var (
	overload = algo.Decision{Reason: algo.Overload, Limit: 1, RetryAfter: time.Millisecond}
	never    = algo.Decision{Reason: algo.Never, Limit: 1, RetryAfter: algo.Forever}
)
