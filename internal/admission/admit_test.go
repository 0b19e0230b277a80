package admission_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// policyOf is a policy for calls that are contexts.
func policyOf(l algo.Limiter) *admission.Policy[context.Context] {
	key := func(context.Context) (string, error) { return "k", nil }
	s := admission.Configure(admission.Adapter{Package: "test"}, "New", nil, struct{}{}, []admission.Option[context.Context, struct{}]{})
	return admission.NewPolicy(admission.Adapter{Package: "test"}, &s.Settings, l, key, "New")
}

// A client waits for quota as long as MaxWait and its deadline allow, and not
// at all where waiting does not help.
func TestWaitForQuota(t *testing.T) {
	for name, row := range map[string]struct {
		d        algo.Decision
		maxWait  time.Duration
		deadline time.Duration
		want     time.Duration
		cause    admission.Cause
	}{
		"no wait":          {denies(algo.Quota, 3*time.Second), 0, time.Hour, 0, admission.ByLimiter},
		"too long":         {denies(algo.Quota, 3*time.Second), 2 * time.Second, time.Hour, 0, admission.ByLimiter},
		"twice":            {denies(algo.Quota, 3*time.Second), 8 * time.Second, time.Hour, 6 * time.Second, admission.ByLimiter},
		"no time given":    {denies(algo.Quota, 0), 5 * time.Second, time.Hour, 5 * time.Second, admission.ByLimiter},
		"until a deadline": {denies(algo.Quota, 3*time.Second), algo.Forever, 10 * time.Second, 8 * time.Second, admission.ByDeadline},
		"for ever":         {denies(algo.Quota, algo.Forever), algo.Forever, 0, 0, admission.ByLimiter},
		"never":            {denies(algo.Never, algo.Forever), algo.Forever, 0, 0, admission.ByLimiter},
		"overload":         {denies(algo.Overload, time.Second), algo.Forever, 0, 0, admission.ByLimiter},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := t.Context(), func() {}
				if row.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, row.deadline)
				}
				defer cancel()
				start := time.Now()
				var lease algo.Lease
				a := admission.Attempt{MaxWait: row.maxWait}
				require.Equal(t, admission.Denied, policyOf(says{d: row.d}).Admit(ctx, ctx, &lease, &a))
				require.Equal(t, row.want, time.Since(start))
				require.Equal(t, row.cause, a.Cause)
			})
		})
	}
}

// A reserve turns an admission that leaves too little into a denial, and gives
// it back.
func TestReserve(t *testing.T) {
	l := &ledger{Limiter: says{d: admits(0)}} // leaves 4 of 10
	for share, want := range map[float64]admission.Result{0: admission.Allowed, 0.4: admission.Allowed, 0.41: admission.Denied} {
		before := l.charged
		var lease algo.Lease
		a := admission.Attempt{Reserve: share}
		require.Equal(t, want, policyOf(l).Admit(t.Context(), t.Context(), &lease, &a), "%v", share)
		if want == admission.Denied {
			require.Equal(t, admission.ByReserve, a.Cause)
			require.Equal(t, algo.Overload, lease.Reason)
			require.Equal(t, before, l.charged)
		}
	}
}

// Calls that wait for quota are served in the order of their arrival, the large
// ones too; one that gives up makes room.
func TestWaitInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policyOf(algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(5))))
		start := time.Now()
		var mu sync.Mutex
		served := map[int]time.Duration{}
		var all sync.WaitGroup
		call := func(i int, cost int64, patience time.Duration, want admission.Result, cause admission.Cause) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				var lease algo.Lease
				a := admission.Attempt{Key: "k", Cost: cost, MaxWait: algo.Forever}
				if got := p.Acquire(ctx, &lease, &a); got != want || a.Cause != cause {
					t.Error(i, got, a.Cause)
				} else if got == admission.Allowed {
					mu.Lock()
					served[i] = time.Since(start)
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		call(0, 5, time.Hour, admission.Allowed, admission.ByLimiter)
		call(1, 1, time.Hour, admission.Allowed, admission.ByLimiter)
		call(2, 5, time.Hour, admission.Allowed, admission.ByLimiter)
		call(3, 1, 300*time.Millisecond, admission.Denied, admission.ByDeadline)
		call(4, 1, time.Hour, admission.Allowed, admission.ByLimiter)
		all.Wait()
		ms := time.Millisecond
		require.Equal(t, map[int]time.Duration{0: 0, 1: 100 * ms, 2: 600 * ms, 4: 700 * ms}, served)
	})
}

// Who waits for quota as told commits no offence: a ban counts none of the looks.
func TestWaitForQuotaIsNoOffence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ban := algo.Must(algo.NewBan(algo.Must(algo.NewTokenBucket(algo.PerMinute(1))), algo.PerHour(2), time.Hour, time.Hour))
		for range 10 {
			var lease algo.Lease
			a := admission.Attempt{MaxWait: algo.Forever}
			require.Equal(t, admission.Allowed, policyOf(ban).Admit(t.Context(), t.Context(), &lease, &a))
			lease.Release(algo.Succeeded)
		}
		require.Zero(t, ban.Banned("k"))
	})
}
