package algotest

import "github.com/sluice-go/sluice/internal/workshop/cases"

// Cases returns the number of cases for a property: normal, a twentieth of that
// under the race detector, or full if the environment has SLUICE_LONG, as with
// "make long".
func Cases(normal, full int) int { return cases.Count(normal, full) }
