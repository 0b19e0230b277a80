package algo_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	colors "github.com/sluice-go/sluice/algo/marker"
	"github.com/sluice-go/sluice/internal/interleave"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// A reset forgives earlier admissions; a later cancellation must not forgive
// them a second time, at the expense of charges made since.
func TestResetThenCancelMintsNothing(t *testing.T) {
	type resetter interface {
		algo.Limiter
		Reset(key string)
	}
	r := algo.PerHour(5)
	marker, err := colors.NewSRTCM(r, 5, 5)
	require.NoError(t, err)
	limiters := map[string]func() resetter{
		"marker": func() resetter { return colors.Limit(marker, colors.Green).(resetter) },
	}
	for _, text := range append(cases.Limits("5/h", nil), "pacer 5/h queue 4", "nginx 5/h burst 4", "smooth-bursty 5/h") {
		limiters[text] = func() resetter { return made(text) }
	}
	for name, make := range limiters {
		for _, key := range []string{"", "k"} {
			t.Run(name+"/"+key, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := make()
					before, _ := l.Acquire(context.Background(), key, 5)
					require.True(t, before.Allowed)
					l.Reset(key)
					after, _ := l.Acquire(context.Background(), key, 5)
					require.True(t, after.Allowed)
					spent, _ := l.Acquire(context.Background(), key, 0)
					before.Release(algo.Canceled)
					again, _ := l.Acquire(context.Background(), key, 0)
					require.Equal(t, spent.Decision, again.Decision)
					after.Release(algo.Canceled)
					last, _ := l.Acquire(context.Background(), key, 5)
					require.True(t, last.Allowed, "a charge after the reset can be refunded")
				})
			})
		}
	}
}

// A reset forgives a charge that came while it ran. The word that it swaps is
// the one that it read, because a refund of the same size came too.
func TestW1_ResetDuringRefundAndCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
		require.True(t, l.Allow("", 1))
		refunded := must(t, l, "", 4)
		var charged algo.Lease
		var points atomic.Int64
		swap, swapped := make(chan struct{}), make(chan struct{})
		interleave.Hook = func() {
			switch points.Add(1) {
			case 1: // the refund, before it swaps
				<-swap
			case 2: // the reset, before it swaps
				close(swap)
				<-swapped
				charged = must(t, l, "", 4)
			}
		}
		t.Cleanup(func() { interleave.Hook = nil })
		go func() {
			refunded.Release(algo.Canceled)
			close(swapped)
		}()
		synctest.Wait()
		l.Reset("")
		require.Equal(t, int64(10), peek(t, l, "").Remaining)
		require.True(t, l.Allow("", 4))
		charged.Release(algo.Canceled)
		require.Equal(t, int64(6), peek(t, l, "").Remaining)
	})
}
