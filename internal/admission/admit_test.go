package admission_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/internal/cause"
)

// policyOf is a policy for calls that are contexts.
func policyOf(l algo.Limiter) *admission.Policies[context.Context] {
	key := func(context.Context) (string, error) { return "k", nil }
	s := admission.Configure(admission.Adapter{Package: "test"}, "New", nil, struct{}{}, []struct{}{},
		func(struct{}) (string, func(*admission.Config[context.Context, struct{}]) error) { return "", nil })
	return admission.NewPolicies(admission.Adapter{Package: "test"}, &s.Settings, l, key, "New")
}

// charge is Admit with a wait.
func charge(ctx context.Context, ps *admission.Policies[context.Context], lease *algo.Lease, wait time.Duration) (v admission.Verdict[context.Context]) {
	ps.Keys(ctx, ctx, &v, nil, nil)
	ps.Charge(ctx, ctx, lease, &v, wait)
	return v
}

// A message waits for quota as long as its wait and its deadline allow, and not
// at all where waiting does not help.
func TestWaitForQuota(t *testing.T) {
	for name, row := range map[string]struct {
		d        algo.Decision
		maxWait  time.Duration
		deadline time.Duration
		want     time.Duration
		cause    algo.Cause
	}{
		"no wait":          {denies(algo.Quota, 3*time.Second), 0, time.Hour, 0, cause.None},
		"too long":         {denies(algo.Quota, 3*time.Second), 2 * time.Second, time.Hour, 0, cause.None},
		"twice":            {denies(algo.Quota, 3*time.Second), 8 * time.Second, time.Hour, 6 * time.Second, cause.None},
		"until a deadline": {denies(algo.Quota, 3*time.Second), algo.Forever, 10 * time.Second, 8 * time.Second, cause.Deadline},
		"for ever":         {denies(algo.Quota, algo.Forever), algo.Forever, 0, 0, cause.None},
		"never":            {denies(algo.Never, algo.Forever), algo.Forever, 0, 0, cause.None},
		"overload":         {denies(algo.Overload, time.Second), algo.Forever, 0, 0, cause.None},
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
				v := charge(ctx, policyOf(says{d: row.d}), &lease, row.maxWait)
				require.Equal(t, telemetry.Denied, v.Result)
				require.Equal(t, row.want, time.Since(start))
				require.Equal(t, row.cause, v.Decision().Cause)
			})
		})
	}
}

// Calls that wait for quota are served in the order of their arrival, the large
// ones too; one that gives up makes room.
func TestWaitInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(5)))
		start := time.Now()
		var mu sync.Mutex
		served := map[int]time.Duration{}
		var all sync.WaitGroup
		call := func(i int, cost int64, patience time.Duration, want telemetry.Result) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				ps := policyOf(l)
				ps.All[0].Cost = func(context.Context) int64 { return cost }
				var lease algo.Lease
				if v := charge(ctx, ps, &lease, algo.Forever); v.Result != want {
					t.Error(i, v.Result)
				} else if v.Result == telemetry.Allowed {
					mu.Lock()
					served[i] = time.Since(start)
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		call(0, 5, time.Hour, telemetry.Allowed)
		call(1, 1, time.Hour, telemetry.Allowed)
		call(2, 5, time.Hour, telemetry.Allowed)
		call(3, 1, 300*time.Millisecond, telemetry.Denied)
		call(4, 1, time.Hour, telemetry.Allowed)
		all.Wait()
		ms := time.Millisecond
		require.Equal(t, map[int]time.Duration{0: 0, 1: 100 * ms, 2: 600 * ms, 4: 700 * ms}, served)
	})
}

// Who waits for quota as told commits no offence: a ban counts none of the looks.
func TestWaitForQuotaIsNoOffence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ban := algo.Must(guard.NewBan(algo.Must(algo.NewTokenBucket(algo.PerMinute(1))), algo.PerHour(2), time.Hour, time.Hour))
		for range 10 {
			var lease algo.Lease
			require.Equal(t, telemetry.Allowed, charge(t.Context(), policyOf(ban), &lease, algo.Forever).Result)
			lease.Release(algo.Succeeded)
		}
		require.Zero(t, ban.Banned("k"))
	})
}
