package admission_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// No jitter is early, or later than a fifth of the wait and 5 s, and the second
// in which the quota comes back.
func TestJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wait := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "wait"))
		random := rapid.Float64Range(0, 0.999999).Draw(t, "random")
		reset := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "reset"))
		got := admission.Jitter(wait, reset, random)
		require.GreaterOrEqual(t, got, wait)
		require.LessOrEqual(t, got-wait, max(min(wait/5, 5*time.Second), min(reset-wait, time.Second)))
	})
}

func TestPushback(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		wait, left time.Duration
		want       int32
	}{
		{1, algo.Forever, 1},
		{2 * ms, 2 * ms, -1},
		{4 * ms, 5 * ms, 4},
		{algo.Forever, algo.Forever, -1},
		{algo.Forever / 2, algo.Forever, math.MaxInt32},
		{time.Second, -time.Second, -1},
	} {
		var v admission.Verdict[context.Context]
		policyOf(algo.Unlimited()).Decided(&v, "k", denies(algo.Quota, row.wait))
		require.Equal(t, row.want, min(v.Pushback(row.left), row.want), "%v of %v", row.wait, row.left)
	}
}
