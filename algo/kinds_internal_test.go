package algo

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestEveryAlgorithmIsACase: the tests range over internal/workshop/cases, so an algorithm that is missing
// there is missing from them.
func TestEveryAlgorithmIsACase(t *testing.T) {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	require.ElementsMatch(t, names, cases.Algorithms(), "each algorithm needs its row in internal/workshop/cases/algorithms.go")
}

// TestEveryAlgorithmIsInTheCrowd: a refund of an algorithm must not let more pass than its bound.
func TestEveryAlgorithmIsInTheCrowd(t *testing.T) {
	tested := map[string]bool{}
	for _, row := range crowdRows {
		if l, ok := row.make().(*RateLimiter); ok {
			tested[l.Spec().Algorithm] = true
		}
	}
	for _, name := range cases.Algorithms() {
		require.True(t, tested[name], "%s: add its bound to crowdRows", name)
	}
}

// TestW1_CutDebtIsNotRefunded: after a cost that is far more than the limit takes, no earlier unit
// is given back: with it more would come back than is owed.
func TestW1_CutDebtIsNotRefunded(t *testing.T) {
	for _, text := range cases.Limits("4/h", cases.Without{"warmup": "its first cost is paid by the second"}) {
		synctest.Test(t, func(t *testing.T) {
			for _, key := range []string{"", "k"} {
				l := made(text)
				early, late := admit(t, l, key, 1), admit(t, l, key, 0)
				late.Settle(1 << 40)
				owed, err := l.Peek(background, key, 1)
				require.NoError(t, err)
				early.Release(Canceled)
				after, err := l.Peek(background, key, 1)
				require.NoError(t, err)
				require.Equal(t, owed, after, text)
			}
		})
	}
}

// TestTraitsOfCases: as many units fit at once as internal/workshop/cases says, and are delayed where it
// says so.
func TestTraitsOfCases(t *testing.T) {
	const says = "%s: the traits in internal/workshop/cases/algorithms.go"
	ahead := cases.Without{cases.Ahead: "compared"}
	delays := cases.Without{cases.Delays: "compared"}
	for _, text := range cases.Limits("4/h", nil) {
		synctest.Test(t, func(t *testing.T) {
			beyond := mustAcquire(t, made(text), "k", 5)
			require.Equal(t, !slices.Contains(cases.Limits("4/h", ahead), text), beyond.Allowed && beyond.Delay == 0, says, text)
			l, n, delayed := made(text), 0, false
			for lease := mustAcquire(t, l, "k", 1); lease.Allowed; lease = mustAcquire(t, l, "k", 1) {
				n, delayed = n+1, delayed || lease.Delay > 0
			}
			require.Equal(t, !slices.Contains(cases.Limits("4/h", delays), text), delayed, says, text)
			require.True(t, n == 4 || delayed || beyond.Allowed, "%s: %d of 4 units fit at once", text, n)
		})
	}
}
