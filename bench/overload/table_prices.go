package main

import (
	"fmt"
	"slices"
)

// ways to deny a request, as the server's -price names them; the first of each is the floor.
var ways = []struct {
	protocol, limiter string
	ways              []string
}{
	{"HTTP/1.1", "none", []string{"bare", "bare, a text", "bare, a text and Retry-After", "httpmw", "httpmw, no fields", "httpmw, no body", "httpmw, with an event", "listener"}},
	{"gRPC", "none/grpc", []string{"status.Error", "grpcmw", "grpcmw, with an event", "tap"}},
}

// denialPrices are the processor times of denials, in turns.
func denialPrices(r rig) error {
	const rounds, clients = 5, 16
	heads("The price of a denial\n\nProcessor time of the server, on one processor, for each denial; median of five rounds in turns. The floor is a handler or an interceptor that only denies.",
		"protocol", "denied by", "us", "of the floor")
	r.work, r.procs = "500us", 1
	for _, p := range ways {
		took := map[string][]float64{}
		for range rounds {
			for _, way := range p.ways {
				r.limiter, r.args = p.limiter, []string{"-price", way}
				if err := r.with(func(r rig) error {
					each, err := r.price(clients, length())
					took[way] = append(took[way], 1e6*each)
					return err
				}); err != nil {
					return err
				}
			}
		}
		median := func(way string) float64 { slices.Sort(took[way]); return took[way][rounds/2] }
		for _, way := range p.ways {
			fmt.Printf("| %s | %s | %.1f | %.2f |\n", p.protocol, way, median(way), median(way)/median(p.ways[0]))
		}
	}
	return nil
}
