package httpmw

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// Limit makes a middleware that asks l before each request, under the key
// that key gives it. Admitted requests go on to the handler with the
// RateLimit fields set; denied ones are answered with 429 or 503.
//
//	handler = httpmw.Limit(perClient, keyfunc.ClientIP())(handler)
//
// An admission that comes with a Delay is slept out before the handler runs.
// If the request's context ends sooner, the request is denied at once and the
// charge given back.
//
// The lease is released when the handler returns, panics or exits its
// goroutine. A connection that the handler hijacks keeps its slot until it is
// closed. The outcome that the limiter learns is Failed for panics and for
// 5xx, Ignored for what says nothing of how long work takes (4xx, server-sent
// events, CONNECT, hijacked connections, clients that went away), and Succeeded
// otherwise. The status is seen only where the limiter may hold a slot, which is
// assumed of all but those that count over time.
//
// Several middlewares around each other decide one by one: what an inner one
// denies stays charged to the outer ones. [Limits] charges all or none.
//
// Limit panics if l, key or a function in an option is nil, and if an option
// does not belong to it: a service that is wired wrongly must not start. It
// takes all options but WithMaxServers.
//
// Do not use it for a limit that one request charges several times, such as
// one per message of a stream; ask the limiter from the handler instead.
func Limit(l algo.Limiter, key keyfunc.HTTP, opts ...Option) func(http.Handler) http.Handler {
	c := configure("Limit", opts)
	g := newGuard("Limit", []Policy{{Name: c.name, Limiter: l, Key: key}}, c)
	return g.wrap
}

// guard is what all handlers of one middleware share. It does not change once
// it is made.
type guard struct {
	config
	rules []*rule
	// watches: the response writer must be wrapped, to see the status or to
	// see a connection being hijacked.
	watches bool
}

func newGuard(constructor string, ps []Policy, c config) *guard {
	g := &guard{config: c, watches: c.refundIf != nil}
	for i, p := range ps {
		field := func(name string) string {
			if len(ps) == 1 {
				return "the " + name
			}
			return fmt.Sprintf("the %s of policy %d", name, i)
		}
		require(!isNil(p.Limiter), constructor, field("limiter")+" is nil")
		require(p.Key != nil, constructor, field("key function")+" is nil")
		if p.Cost == nil {
			p.Cost = c.cost
		}
		r, err := newRule(p)
		if err != nil {
			panic("httpmw: " + constructor + ": " + err.Error())
		}
		g.rules = append(g.rules, r)
		g.watches = g.watches || r.mayHold
	}
	return g
}

func (g *guard) wrap(next http.Handler) http.Handler {
	require(!isNil(next), "middleware", "the next handler is nil")
	g.warnIfNested(next)
	return &handler{guard: g, next: next}
}

// require panics with the name of the constructor unless ok.
func require(ok bool, constructor, what string) {
	if !ok {
		panic("httpmw: " + constructor + ": " + what)
	}
}

// isNil also finds the nil pointer inside an interface, which would panic on
// the first request only.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan, reflect.Interface:
		return r.IsNil()
	}
	return false
}
