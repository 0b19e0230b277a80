package distributed

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestW3_LowerCountAppliesAfterALifetime: after an outage the instances return
// one by one, and the first must not share the limit among themselves.
func TestW3_LowerCountAppliesAfterALifetime(t *testing.T) {
	const lifetime = lifetimes * heartbeat
	freshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		r := &virtualLimiter(t, newVirtualServer(perMicros(1, time.Hour), 1), 0).store.registry
		is := func(counted, known int) {
			t.Helper()
			r.note(counted, 0, 0)
			require.Equal(t, known, r.known().count)
		}
		is(5, 16)
		time.Sleep(heartbeat)
		is(5, 16) // until the others have counted this one
		time.Sleep(2 * heartbeat)
		is(5, 5)
		for range 9 { // lower for 9 seconds
			is(1, 5)
			time.Sleep(time.Second)
		}
		is(5, 5)
		is(3, 5)
		time.Sleep(lifetime)
		is(3, 3)
		is(4, 4)
	})
}

// TestInstancesChangedHasTheNumber: a hook and the log get the number that is in force, and a line
// has no attribute without a value.
func TestInstancesChangedHasTheNumber(t *testing.T) {
	freshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var seen []int
		r := &virtualLimiter(t, newVirtualServer(perMicros(1, time.Hour), 1), 0, WithHook(func(e Event) {
			if e.Kind == InstancesChanged {
				seen = append(seen, e.Instances)
			}
		})).store.registry
		r.store.logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		r.note(5, 0, 0)
		time.Sleep(3 * heartbeat)
		r.note(5, 0, 0)
		r.note(3, 0, 0) // in force after a lifetime
		time.Sleep(lifetimes * heartbeat)
		r.note(3, 0, 0)
		require.Equal(t, []int{16, 5, 3}, seen)
		require.Contains(t, log.String(), "instances changed\" instances=3\n")
		log.Reset()
		r.store.emit(Event{Kind: BreakerChanged, Phase: PhaseRamping})
		require.NotRegexp(t, `node=|err=`, log.String())
		log.Reset()
		r.store.emit(Event{Kind: BreakerChanged, Phase: PhaseOpen, Node: "127.0.0.1:6379", Err: ErrUnavailable})
		require.Contains(t, log.String(), "node=127.0.0.1:6379 err=")
	})
}
