package algo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	colors "github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// The answer of a limiter of another package is found without a charge, by a
// peek or from a denial.
func TestW4_PeekOfForeignLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		empty := bucket(algo.PerMinute(1))
		require.True(t, empty.Allow("", 1))
		first := algo.Request{Limiter: empty, N: 1}

		fits := &foreign{Limiter: bucket(algo.PerHour(10))}
		lease := acquireAll(t, first, algo.Request{Limiter: fits, N: 10})
		require.Equal(t, time.Minute, lease.RetryAfter)
		require.Empty(t, fits.charges)

		short := &foreign{Limiter: bucket(algo.PerHour(10))}
		require.True(t, must(t, short.Limiter, "", 3).Allowed)
		lease = acquireAll(t, first, algo.Request{Limiter: short, N: 10})
		require.Equal(t, 18*time.Minute, lease.RetryAfter, "10 units, not one")
		lease = acquireAll(t, first, algo.Request{Limiter: limiterFunc(short.Limiter.Acquire), N: 10})
		require.Equal(t, 18*time.Minute, lease.RetryAfter, "of one that is no Peeker, when it is full")
		lease = acquireAll(t, first, algo.Request{Limiter: limiterFunc(short.Limiter.Acquire), N: 8})
		require.Equal(t, 6*time.Minute, lease.RetryAfter, "its next unit")
		require.Empty(t, short.charges)

		shaped := &foreign{Limiter: bucket(algo.PerHour(10), algo.MaxWait(time.Hour))}
		lease = acquireAll(t, first, algo.Request{Limiter: shaped, N: 15})
		require.Equal(t, time.Minute, lease.RetryAfter)
		require.True(t, lease.Parts()[1].Allowed)
		require.Equal(t, int64(10), peek(t, shaped.Limiter, "").Remaining, "given back")

		lease = acquireAll(t, first, algo.Request{Limiter: broken, N: 1})
		require.False(t, lease.Allowed, "a failing limit does not change the denial of another")
		require.Equal(t, algo.Decision{}, lease.Parts()[1])
	})
}

// embedding belongs to another package. It has its own
// Acquire and Peek: twice the cost, and 1 s more to wait.
type embedding struct {
	*algo.RateLimiter
	calls, settled []int64
}

func (e *embedding) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	e.calls = append(e.calls, n)
	lease, err := e.RateLimiter.Acquire(ctx, key, 2*n)
	lease.Limit, lease.Remaining = lease.Limit/2, lease.Remaining/2
	if err != nil || !lease.Allowed {
		lease.RetryAfter += time.Second
		return lease, err
	}
	return algo.NewLease(lease.Decision, e, algo.Handle{Key: key, N: n}), nil
}

// Peek answers as Acquire does.
func (e *embedding) Peek(ctx context.Context, key string, n int64) (algo.Decision, error) {
	e.calls = append(e.calls, n)
	d, err := e.RateLimiter.Peek(ctx, key, 2*n)
	d.Limit, d.Remaining = d.Limit/2, d.Remaining/2
	if err == nil && !d.Allowed {
		d.RetryAfter += time.Second
	}
	return d, err
}

func (e *embedding) Release(algo.Handle, algo.Outcome) {}

func (e *embedding) Settle(_ algo.Handle, actual int64) { e.settled = append(e.settled, actual) }

// A type that embeds a limiter of this package decides through its own Acquire,
// alone and in every composition.
func TestW4_EmbeddedLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wraps := map[string]func(algo.Limiter) algo.Limiter{
			"itself": func(l algo.Limiter) algo.Limiter { return l },
			"all":    func(l algo.Limiter) algo.Limiter { return algo.All(l, bucket(algo.PerHour(100))) },
			"switch": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
			"shadow": func(l algo.Limiter) algo.Limiter { return algo.All(l, algo.Shadow(l)) },
		}
		for name, wrap := range wraps {
			l := &embedding{RateLimiter: bucket(algo.PerMinute(6))}
			other := bucket(algo.PerHour(100))
			lease := acquireAll(t, algo.Request{Limiter: other, N: 1}, algo.Request{Limiter: wrap(l), N: 1})
			require.True(t, lease.Allowed, name)
			lease.Settle(5)
			require.Contains(t, l.settled, int64(5), name)
			l.Reset("")
			lease.Release(algo.Succeeded)

			require.True(t, must(t, l.RateLimiter, "", 5).Allowed)
			deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota, RetryAfter: 1}), N: 1}
			for order, reqs := range map[string][]algo.Request{
				"it denies":       {{Limiter: other, N: 1}, {Limiter: wrap(l), N: 1}},
				"another one did": {deny, {Limiter: wrap(l), N: 1}},
			} {
				l.calls = nil
				lease = acquireAll(t, reqs...)
				require.False(t, lease.Allowed)
				require.Equal(t, 11*time.Second, lease.RetryAfter, "%s, %s: 2 units, and 1 s more", name, order)
				require.Contains(t, l.calls, int64(1))
			}
		}
	})
}

// An in-flight limiter is only peeked: it might let the request wait.
func TestPeekOfInFlightLimits(t *testing.T) {
	full := &inFlight{left: 0}
	deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota, RetryAfter: time.Second}), N: 1}
	lease := acquireAll(t, deny, algo.Request{Limiter: full, N: 1})
	require.Equal(t, algo.Overload, lease.Reason)
	require.Equal(t, 5*time.Second, lease.RetryAfter)
	require.Equal(t, []int64{0}, full.asked)

	lease = acquireAll(t, deny, algo.Request{Limiter: full, N: 11})
	require.Equal(t, algo.Never, lease.Reason)
	require.Equal(t, algo.Forever, lease.RetryAfter)
}

type inFlight struct {
	left  int64
	asked []int64
}

func (f *inFlight) Acquire(_ context.Context, _ string, n int64) (algo.Lease, error) {
	f.asked = append(f.asked, n)
	d := algo.Decision{Allowed: n == 0, Limit: 10, Remaining: f.left, NextAfter: 5 * time.Second}
	return algo.NewLease(d, nil, algo.Handle{}), nil
}

func (f *inFlight) About() algo.Description {
	return algo.Description{Quota: 10, Unit: algo.ConcurrentRequests, Shared: true, NeedsRelease: true}
}

// For a new key in a full table, the peek of every limiter equals its Acquire.
func TestPeekWhenTheTableIsFull(t *testing.T) {
	marker := func(opts ...algo.Option) (algo.Limiter, error) {
		m, err := colors.NewTRTCM(algo.PerHour(5), 5, algo.PerHour(9), 9, append(opts, algo.MaxKeys(1))...)
		return colors.Limit(m, colors.Green), err
	}
	limiters := map[string]func(...algo.Option) (algo.Limiter, error){"marker": marker}
	for _, text := range cases.Limits("5/h", nil) {
		limiters[text] = func(opts ...algo.Option) (algo.Limiter, error) { return made(text+" keys 1", opts...), nil }
	}
	in(t, limiters, func(t *testing.T, make func(...algo.Option) (algo.Limiter, error)) {
		synctest.Test(t, func(t *testing.T) {
			for _, opts := range [][]algo.Option{nil, {algo.DenyNew()}} {
				l, err := make(opts...)
				require.NoError(t, err)
				for i := range 500 {
					must(t, l, fmt.Sprint("flood-", i), 5)
				}
				deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota}), N: 1}
				lease := acquireAll(t, deny, algo.Request{Limiter: l, Key: "new", N: 5})
				asked := lease.Parts()[1]
				got := must(t, l, "new", 5)
				require.Equal(t, got.Allowed, asked.Allowed, "%v", opts)
				require.Equal(t, got.Source, asked.Source)
				require.Equal(t, got.Reason, asked.Reason)
				require.Equal(t, got.RetryAfter, asked.RetryAfter)
			}
		})
	})
}

// After a refund a limit is asked again only where this is cheap.
func TestPeekAfterGivingBack(t *testing.T) {
	calls := 0
	counted := limiterFunc(func(_ context.Context, _ string, n int64) (algo.Lease, error) {
		calls++
		return algo.NewLease(algo.Decision{Allowed: true, Limit: 9, Remaining: 9 - n}, nil, algo.Handle{}), nil
	})
	deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota}), N: 1}
	local := bucket(algo.PerHour(9))
	escalate := algo.Must(guard.NewBan(counted, algo.PerHour(9), 1, 1))
	lease := acquireAll(t, algo.Request{Limiter: counted, N: 1}, algo.Request{Limiter: algo.Shadow(counted), N: 1},
		algo.Request{Limiter: escalate, N: 1}, algo.Request{Limiter: algo.Shadow(local), N: 1}, deny)
	require.Equal(t, 3, calls)
	require.Equal(t, []bool{true, true, true, true, false}, verdicts(lease.Parts()))
	require.Equal(t, int64(9), lease.Parts()[3].Remaining, "after giving back")
}

// Wrappers that answer by themselves, where a composition cannot be taken apart.
func TestPeekThroughWrappers(t *testing.T) {
	deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota, RetryAfter: 1}), N: 1}
	ask := func(l algo.Limiter) algo.Decision {
		lease := acquireAll(t, deny, algo.Request{Limiter: l, Key: "k", N: 1})
		return lease.Parts()[1]
	}
	local := bucket(algo.PerHour(9))
	barred := algo.All(local, listed(local, algo.DenyAll(), "k"))
	require.Equal(t, algo.Banned, ask(barred).Reason)
	require.Equal(t, algo.SourceTrial, ask(algo.Shadow(barred)).Source)
	require.Equal(t, algo.SourceTrial, ask(algo.Shadow(algo.All(local, listed(local, algo.Unlimited(), "k")))).Source)
	require.Equal(t, algo.Decision{}, ask(algo.All(local, broken)), "unknown")
	require.Equal(t, algo.SourceTrial, ask(algo.Shadow(algo.All(local, broken))).Source)
	require.Equal(t, int64(9), peek(t, local, "k").Remaining)
}

// A panic while the others are asked finds everything given back.
func TestW4_PeekPanics(t *testing.T) {
	local := bucket(algo.PerHour(3))
	panics := limiterFunc(func(context.Context, string, int64) (algo.Lease, error) { panic("limiter") })
	require.PanicsWithValue(t, "limiter", func() {
		_, _ = algo.AcquireAll(bg, algo.Request{Limiter: local, N: 3},
			algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota}), N: 1}, algo.Request{Limiter: panics, N: 1})
	})
	require.Equal(t, int64(3), drain(t, local, ""))
}

// A marker of another package cannot give back, so it is not charged to be
// asked.
func TestPeekOfAForeignMarker(t *testing.T) {
	m := &countingMarker{}
	deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota}), N: 1}
	acquireAll(t, deny, algo.Request{Limiter: colors.Limit(m, colors.Green), Key: "k", N: 3})
	require.Zero(t, m.marked)
}

type countingMarker struct{ marked int64 }

func (m *countingMarker) Mark(_ context.Context, _ string, n int64, _ colors.Color) (colors.Color, error) {
	m.marked += n
	return colors.Green, nil
}
