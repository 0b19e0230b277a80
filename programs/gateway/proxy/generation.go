package proxy

import (
	"net/http"
	"sync/atomic"
)

// generation is one configuration in force and the count of requests that run
// under it. The configuration itself is one of the count until it is retired,
// so the count reaches zero once, and after that no request can join.
type generation struct {
	handler http.Handler
	running atomic.Int64
	retired func() // set before the configuration leaves the count
}

func newGeneration(h http.Handler) *generation {
	g := &generation{handler: h}
	g.running.Store(1)
	return g
}

// join counts a request in, unless all have left.
func (g *generation) join() bool {
	for {
		n := g.running.Load()
		if n == 0 {
			return false
		}
		if g.running.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (g *generation) leave() {
	if g.running.Add(-1) == 0 {
		g.retired()
	}
}

// retire calls done once the last request has left.
func (g *generation) retire(done func()) {
	g.retired = done
	g.leave()
}
