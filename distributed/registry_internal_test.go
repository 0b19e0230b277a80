package distributed

import (
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
