// Package cases says how many cases a test tries, and which tests "make test" leaves out.
package cases

import (
	"os"
	"testing"
	"time"
)

// Long reports whether the full counts are asked for: SLUICE_LONG is set to
// something in the environment, as "make long" does.
func Long() bool { return os.Getenv("SLUICE_LONG") != "" }

// Count returns how many cases a property is tried on: normal in an everyday
// run, a tenth of that with -short, a twentieth under the race detector, full in
// a long run. A test that needs more of them to decide uses the larger of both.
func Count(normal, full int) int {
	if Long() {
		return full
	}
	if testing.Short() {
		normal /= 10
	}
	return max(normal/slowdown, 1)
}

// Span returns how long a simulation of d lasts: a quarter of that under the race detector.
func Span(d time.Duration) time.Duration { return d / min(slowdown, 4) }

// Slow leaves a test that waits seconds, or for several processes, to "make check": "make test"
// has -short. SLUICE_SLOW=1 runs it there too, as "make mutants" does.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() && os.Getenv("SLUICE_SLOW") == "" {
		t.Skip("slow: make check runs it")
	}
}
