package algotest

import "github.com/sluice-go/sluice/internal/cases"

// Cases returns how many cases a property is tried on: normal in an everyday
// run, a tenth of that under the race detector, full where SLUICE_LONG is set in the environment, as "make long" does.
func Cases(normal, full int) int { return cases.Count(normal, full) }
