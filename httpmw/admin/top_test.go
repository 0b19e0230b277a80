package admin_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

// Keys that a limit on trial would deny, however many, hide no key that is denied: they come after these, marked.
func TestTopKeepsTrialsApart(t *testing.T) {
	a := newAdmin(t)
	for i := range 40_000 {
		e := event(telemetry.Allowed, algo.Decision{Allowed: true, Trial: algo.Quota, Source: algo.SourceTrial})
		e.Policy, e.KeyHash = "trial", uint64(i%200+1)
		a.Observe(e)
		if i%1000 == 0 {
			e = event(telemetry.Denied, algo.Decision{Reason: algo.Quota})
			e.Policy, e.KeyHash = "real", 7
			a.Observe(e)
		}
	}
	rows := state(t, a)["top"].([]any)
	require.Equal(t, "real", at(t, rows, 0, "policy"))
	require.Equal(t, 40.0, at(t, rows, 0, "least"))
	require.Equal(t, fmt.Sprintf("%016x", 7), at(t, rows, 0, "hash"))
	require.Equal(t, false, at(t, rows, 0, "trial"))
	require.Len(t, rows, 11, "ten of the trial")
	for _, row := range rows[1:] {
		require.Equal(t, "trial", at(t, row, "policy"))
		require.Equal(t, true, at(t, row, "trial"))
	}
}
