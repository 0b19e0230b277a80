package client_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limiter is a limiter that is a function.
type limiter func(key string, n int64) (algo.Decision, error)

func (f limiter) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	d, err := f(key, n)
	return algo.NewLease(d, nil, algo.Handle{}), err
}

func admitting() algo.Limiter {
	return limiter(func(string, int64) (algo.Decision, error) { return algo.Decision{Allowed: true}, nil })
}

func denying(reason algo.Reason, retryAfter time.Duration) algo.Limiter {
	return limiter(func(string, int64) (algo.Decision, error) {
		return algo.Decision{Reason: reason, Limit: 10, RetryAfter: retryAfter}, nil
	})
}

func failing(err error) algo.Limiter {
	return limiter(func(string, int64) (algo.Decision, error) { return algo.Decision{}, err })
}

// slots is an in-flight limiter that counts.
type slots struct {
	mu    sync.Mutex
	most  int64
	used  int64
	ended map[algo.Outcome]int
}

func newSlots(most int64) *slots { return &slots{most: most, ended: map[algo.Outcome]int{}} }

func (s *slots) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+n > s.most {
		return algo.NewLease(algo.Decision{Reason: algo.Overload, Limit: s.most}, nil, algo.Handle{}), nil
	}
	s.used += n
	return algo.NewLease(algo.Decision{Allowed: true, Limit: s.most, Remaining: s.most - s.used}, s, algo.Handle{Key: key, N: n}), nil
}

func (s *slots) Release(h algo.Handle, o algo.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= h.N
	s.ended[o]++
}

func (s *slots) Settle(algo.Handle, int64) {}

func (s *slots) inFlight() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *slots) released(o algo.Outcome) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended[o]
}

func bucket(t testing.TB, r algo.Rate, opts ...algo.Option) algo.Limiter {
	t.Helper()
	l, err := algo.NewTokenBucket(r, opts...)
	require.NoError(t, err)
	return l
}

func failingKey(err error) keyfunc.HTTP {
	return func(*http.Request) (string, error) { return "", err }
}
