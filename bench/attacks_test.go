package main

import (
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	quiet()
	os.Exit(m.Run())
}

// verdicts makes all tries once for all tests.
var verdicts = sync.OnceValue(func() map[string][]verdict {
	all := map[string][]verdict{}
	for _, a := range attacks() {
		all[a.id] = a.run()
	}
	return all
})

// TestSluiceHolds: whatever becomes of the others, our column holds.
func TestSluiceHolds(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.id, func(t *testing.T) {
			tried := false
			for _, v := range verdicts()[a.id] {
				if v.library == sluice {
					tried = true
					require.True(t, v.holds, "%s: %s", a.title, v.figure)
				}
			}
			require.True(t, tried, "sluice is not among the tries")
		})
	}
}

// TestEveryAttackBites: an attack that defeats no limiter proves nothing about
// the others.
func TestEveryAttackBites(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.id, func(t *testing.T) {
			fell := 0
			for _, v := range verdicts()[a.id] {
				t.Logf("%-40s %-5t %s", v.library, v.holds, v.figure)
				require.NotEmpty(t, v.figure, v.library)
				if !v.holds {
					fell++
				}
			}
			require.Positive(t, fell)
		})
	}
}
