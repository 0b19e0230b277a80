package adaptive

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlowsThatBeginAgain: a tenant that always has one request in the queue, and begins anew when that is
// served, takes turns with one that has several.
func TestFlowsThatBeginAgain(t *testing.T) {
	f := newFlows()
	push := func(tenant string, turn float64) {
		f.push(flowKey{Normal, tenant}, &waiter{n: 1}, &arrival{n: 1, claim: claim{turn: turn}}, 0)
	}
	serve := func() string {
		first := f.first.all[0]
		f.serve(first.oldest)
		f.remove(first.oldest)
		return first.tenant
	}
	for range 20 {
		push("several", 3)
	}
	require.Equal(t, "several", serve())
	var turns string
	for range 16 {
		if f.byKey[flowKey{Normal, "one"}] == nil {
			push("one", 1) // a third of the service, so three turns for each
		}
		turns += serve()[:1]
	}
	require.Equal(t, "oosooosooosoooso", turns)
}
