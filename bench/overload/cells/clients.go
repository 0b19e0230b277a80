package main

import (
	"net/http"
	"sync/atomic"
)

// manyClients is HTTP/2 from 100 clients. One client sends all requests over one connection, and
// over another where 250 are on their way.
const manyClients = "HTTP/2 of 100 clients"

func (r rig) http2() bool { return r.protocol == "HTTP/2" || r.protocol == manyClients }

func (r rig) clients() int {
	if r.protocol == manyClients {
		return 100
	}
	return 1
}

// clients take turns, each with its connections.
type clients struct {
	all  []*http.Transport
	next atomic.Uint64
}

func newClients(t *http.Transport, n int) *clients {
	c := &clients{}
	for range n {
		c.all = append(c.all, t.Clone())
	}
	return c
}

func (c *clients) RoundTrip(r *http.Request) (*http.Response, error) {
	return c.all[c.next.Add(1)%uint64(len(c.all))].RoundTrip(r)
}

func (c *clients) close() {
	for _, t := range c.all {
		t.CloseIdleConnections()
	}
}
