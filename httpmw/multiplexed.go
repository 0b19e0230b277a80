package httpmw

import "github.com/sluice-go/sluice/algo"

// connections is an adaptive limiter: where requests share connections, as over HTTP/2, they wait
// for the processor more than once.
type connections interface{ SharesConnection(yes bool) }

// connectionsOf returns those of l and beneath it that ask for it.
func connectionsOf(l algo.Limiter) (all []connections) {
	for one := range algo.Walk(l) {
		if c, ok := one.(connections); ok {
			all = append(all, c)
		}
	}
	return all
}
