package algo

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// TestEveryAlgorithmIsACase: the tests range over internal/cases, so an algorithm that is missing
// there is missing from them.
func TestEveryAlgorithmIsACase(t *testing.T) {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	require.ElementsMatch(t, names, cases.Algorithms(), "each algorithm needs its row in internal/cases/algorithms.go")
}

// TestTraitsOfCases: as many units fit at once as internal/cases says, and are delayed where it
// says so.
func TestTraitsOfCases(t *testing.T) {
	const says = "%s: the traits in internal/cases/algorithms.go"
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
