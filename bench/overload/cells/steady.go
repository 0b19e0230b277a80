package main

import (
	"net/http"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// connections are opened before the load: more than it has requests at once while they fit.
const connections = 512

// steady is a second of requests at one rate, and then the length of a measurement at
// another, of which it returns the results. Over HTTP/1.1 the generator is loadgen, at random
// instants: net/http's client takes more of the shared processors than the server's denials. Over
// TLS and HTTP/2 it is net/http's client, which first opens its connections in a closed loop:
// 2000 TLS handshakes in the first second are an overload of their own, in front of every handler.
func (r rig) steady(before, rate float64) (*counts, error) {
	if r.protocol != "" && r.protocol != "HTTP/1.1" {
		r.closed(connections, time.Second)
		r.open(before, 1, time.Second)
		return r.open(rate, 1, length()), nil
	}
	answers, err := loadgen.Run(loadgen.Config{
		URL: r.addr, Timeout: r.client.Timeout, MaxOpen: 16000, Open: 2000, Seed: 1,
		Phases: []loadgen.Phase{{Rate: before, Duration: time.Second}, {Rate: rate, Duration: length()}},
	})
	c := &counts{}
	for _, a := range answers {
		switch {
		case a.At < time.Second:
		case a.Status == http.StatusOK:
			c.took = append(c.took, a.Took)
		case a.Status > 0:
			c.denied++
		default:
			c.failed++
		}
	}
	return c, err
}
