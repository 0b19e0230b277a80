package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// spender is a caller of an instance beside those of the table: it charges units that do not come
// back by themselves, and slots that nobody else takes, and gives all slots and every other
// unit back. So what is missing at the end has been lost.
type spender struct {
	store        *distributed.Store
	units, slots *distributed.Limiter
	spent        int64 // units that it has kept
}

const (
	spendUnits = 1_000_000
	spendSlots = 64
)

func newSpender(t *testing.T, s *distributed.Store) *spender {
	return &spender{store: s,
		units: must[*distributed.Limiter](t)(s.TokenBucket("units", algo.Per(spendUnits, 300*24*time.Hour))),
		slots: must[*distributed.Limiter](t)(s.InFlight("slots", spendSlots, 30*time.Second))}
}

// run spends until stop is closed.
func (s *spender) run(stop <-chan struct{}) {
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		slot, _ := s.slots.Acquire(ctx, "k", 1)
		unit, _ := s.units.Acquire(ctx, "k", 1)
		slot.Release(algo.Succeeded)
		switch {
		case i%2 == 0:
			unit.Release(algo.Canceled)
		case unit.Allowed && unit.Source != algo.SourceFallback:
			s.spent++
		}
	}
}

// lost waits until nothing is kept any more, and returns the units and slots that nobody has.
func (r *rig) lost(t *testing.T) (units, slots int64) {
	t.Helper()
	first, spent := r.spenders[0], int64(0)
	for _, s := range r.spenders {
		require.Eventually(t, func() bool { return s.store.Stats().Kept == 0 }, 20*time.Second, time.Millisecond)
		spent += s.spent
	}
	deadline := time.Now().Add(4 * probeEvery) // replies that are late still come
	if r.row.blocks > 0 {
		deadline = deadline.Add(3 * time.Second / 2) // unspent blocks go back
	}
	for {
		u, s := remoteNow(t, first.units, "k"), remoteNow(t, first.slots, "k")
		units, slots = spendUnits-u-spent, spendSlots-s
		if u >= 0 && s >= 0 && (units <= 0 && slots == 0 || time.Now().After(deadline)) {
			return max(units, 0), slots
		}
		time.Sleep(time.Millisecond)
	}
}
