package algo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// Asked about a new key when the table is full, every limiter says what its
// Acquire says.
func TestAskingWhenTheTableIsFull(t *testing.T) {
	marker := func(o algo.Option) (algo.Limiter, error) {
		m, err := algo.NewTRTCM(algo.PerHour(5), 5, algo.PerHour(9), 9, algo.MaxKeys(1), o)
		return algo.FromMarker(m, algo.Green), err
	}
	spec := func(text string) func(algo.Option) (algo.Limiter, error) {
		return func(o algo.Option) (algo.Limiter, error) {
			s, err := algo.Parse(text + " keys 1")
			require.NoError(t, err)
			return s.New(o)
		}
	}
	in(t, map[string]func(algo.Option) (algo.Limiter, error){
		"marker":            marker,
		"token-bucket":      spec("5/h"),
		"fixed-window":      spec("fixed-window 5/h"),
		"sliding-window":    spec("sliding-window 5/h"),
		"sliding-log":       spec("sliding-log 5/h"),
		"smooth-warming-up": spec("smooth-warming-up 5/h warmup 1h"),
	}, func(t *testing.T, make func(algo.Option) (algo.Limiter, error)) {
		synctest.Test(t, func(t *testing.T) {
			for _, policy := range []algo.FullPolicy{algo.Overflow, algo.DenyNew, algo.AllowNew} {
				l, err := make(algo.OnFull(policy))
				require.NoError(t, err)
				for i := range 500 {
					must(t, l, fmt.Sprint("flood-", i), 5)
				}
				deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota}), N: 1}
				lease := acquireAll(t, deny, algo.Request{Limiter: l, Key: "new", N: 5})
				asked := lease.Parts()[1]
				got := must(t, l, "new", 5)
				require.Equal(t, got.Allowed, asked.Allowed, "%v", policy)
				require.Equal(t, got.Source, asked.Source)
				require.Equal(t, got.Reason, asked.Reason)
				require.Equal(t, got.RetryAfter, asked.RetryAfter)
			}
		})
	})
}

// What was charged and given back is asked again only where that is cheap.
func TestAskingAgainIsCheap(t *testing.T) {
	calls := 0
	counted := limiterFunc(func(_ context.Context, _ string, n int64) (algo.Lease, error) {
		calls++
		return algo.NewLease(algo.Decision{Allowed: true, Limit: 9, Remaining: 9 - n}, nil, algo.Handle{}), nil
	})
	deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota}), N: 1}
	local := bucket(algo.PerHour(9))
	escalate := algo.Must(algo.NewBan(counted, algo.PerHour(9), 1, 1))
	lease := acquireAll(t, algo.Request{Limiter: counted, N: 1}, algo.Request{Limiter: algo.Shadow(counted), N: 1},
		algo.Request{Limiter: escalate, N: 1}, algo.Request{Limiter: algo.Shadow(local), N: 1}, deny)
	require.Equal(t, 3, calls)
	require.Equal(t, []bool{true, true, true, true, false}, verdicts(lease.Parts()))
	require.Equal(t, int64(9), lease.Parts()[3].Remaining, "after giving back")
}

// Wrappers that answer by themselves, where a composition cannot be taken apart.
func TestAskingThroughWrappers(t *testing.T) {
	deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota, RetryAfter: 1}), N: 1}
	ask := func(l algo.Limiter) algo.Decision {
		lease := acquireAll(t, deny, algo.Request{Limiter: l, Key: "k", N: 1})
		return lease.Parts()[1]
	}
	listed := keySet(t, []string{"k"}, nil)
	local := bucket(algo.PerHour(9))
	barred := algo.All(local, algo.DenyList(local, listed))
	require.Equal(t, algo.Never, ask(barred).Reason)
	require.Equal(t, algo.SourceShadowed, ask(algo.Shadow(barred)).Source)
	require.Equal(t, algo.SourceLocal, ask(algo.Shadow(algo.All(local, algo.AllowList(local, listed)))).Source)
	require.Equal(t, algo.Decision{}, ask(algo.All(local, broken)), "unknown")
	require.Equal(t, algo.SourceShadowed, ask(algo.Shadow(algo.All(local, broken))).Source)
	require.Equal(t, int64(9), peek(t, local, "k").Remaining)
}

// A panic while the others are asked finds everything given back.
func TestAskingPanics(t *testing.T) {
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
func TestAskingAForeignMarker(t *testing.T) {
	m := &countingMarker{}
	deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota}), N: 1}
	acquireAll(t, deny, algo.Request{Limiter: algo.FromMarker(m, algo.Green), Key: "k", N: 3})
	require.Zero(t, m.marked)
}

type countingMarker struct{ marked int64 }

func (m *countingMarker) Mark(_ context.Context, _ string, n int64, _ algo.Color) (algo.Color, error) {
	m.marked += n
	return algo.Green, nil
}
