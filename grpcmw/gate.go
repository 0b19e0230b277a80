package grpcmw

import (
	"reflect"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// gate is one limiter with everything that stands around it. It does not
// change once it is made, and all interceptors that are made together share it.
type gate struct {
	settings
	limiter algo.Limiter
	key     keyfunc.RPC
	exempt  exempt
	answers *answers
	client  bool // it limits calls that are made, not calls that are served
	tapping bool // it can send no trailer
	// attentive: even a plain admission needs a second look.
	attentive bool
}

// newGate panics on every mistake that can be seen without a call.
func newGate(constructor string, takes []string, l algo.Limiter, key keyfunc.RPC, opts []Option) *gate {
	switch {
	case isNil(l):
		misuse(constructor, "the limiter is nil")
	case key == nil:
		misuse(constructor, "the key function is nil; rpckey.Global gives all calls one limit")
	}
	g := &gate{settings: configure(constructor, takes, opts), limiter: l, key: key}
	if g.name == "" {
		g.name = defaultName(l)
	}
	g.exempt = newExempt(g.settings)
	g.answers = newAnswers(g.name, g.domain)
	g.attentive = g.observer != nil || g.retryReserve > 0
	return g
}

// isNil also finds a nil pointer in a non-nil interface: it would panic on the
// first call.
func isNil(l algo.Limiter) bool {
	if l == nil {
		return true
	}
	switch v := reflect.ValueOf(l); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return v.IsNil()
	}
	return false
}

// newClientGate makes a gate that waits rather than denies.
func newClientGate(constructor string, takes []string, l algo.Limiter, key keyfunc.RPC, opts []Option) *gate {
	g := newGate(constructor, takes, l, key, append([]Option{WithMaxWait(algo.Forever)}, opts...))
	g.client, g.answers.prefix = true, "client side: "
	g.backPressure = g.maxWait
	return g
}
