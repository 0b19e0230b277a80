package httpmw

import "github.com/sluice-go/sluice/algo"

// connections is an adaptive limiter, which must know whether requests share connections, as over
// HTTP/2: those wait for the processor more than once.
type connections interface{ SharesConnection(yes bool) }

// connectionsOf returns the connections among l and the limiters beneath it.
func connectionsOf(l algo.Limiter) (all []connections) {
	for one := range algo.Walk(l) {
		if c, ok := one.(connections); ok {
			all = append(all, c)
		}
	}
	return all
}
