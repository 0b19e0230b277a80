package warning

import (
	"context"
	"sync"
	"sync/atomic"
)

// Mistakes that are found in several packages.
var (
	Trial = &Once{Line: Line{
		Code:    "algo.trial_unobserved",
		Message: "algo: a limit is on trial without an observer, so its denials are not reported",
		Do:      "give the middleware or interceptor WithObserver, or put the limit in force",
	}}
	UnknownPolicy = &Once{Line: Line{
		Code:    "algo.unknown_policy",
		Message: "algo: no limit around the request has a policy of that name, so nothing is settled or charged",
		Do:      "correct the name, and give the middleware or interceptor WithLeaseInContext",
	}}
	NoLease = &Once{Line: Line{
		Code:    "algo.meter_without_lease",
		Message: "algo: meter.From found no lease in the context, so the work is not charged",
		Do:      "give the middleware or interceptor WithLeaseInContext, and meter.From the context of the request",
	}}
	NegativeUsage = &Once{Line: Line{
		Code:    "algo.negative_usage",
		Message: "algo: a negative number of used units is ignored",
		Do:      "find out why the usage is negative",
	}}
)

// Unkept is set once a call has passed a limit that keeps no lease for its handler. Only then is a
// context without a lease a mistake, because a handler in a test of its own has none either.
var Unkept atomic.Bool

// Names holds the names of the policies of a middleware, of all plans, including replaced ones.
// A request may lack some of them, because of its plan, a missing key or a skip.
type Names struct {
	mu    sync.Mutex
	known map[string]bool
}

// Add adds a name.
func (n *Names) Add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = make(map[string]bool)
	}
	n.known[name] = true
}

// Len returns the number of names.
func (n *Names) Len() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.known)
}

func (n *Names) has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[name]
}

// lacking is the context of a request that lacks some of the names.
type lacking struct {
	context.Context
	names *Names
}

type lackingKey struct{}

func (l *lacking) Value(key any) any {
	if key == (lackingKey{}) {
		return l
	}
	return l.Context.Value(key)
}

// With returns the context of a request that lacks some of the names by intention.
func (n *Names) With(ctx context.Context) context.Context { return &lacking{ctx, n} }

// Lacks reports whether the request of ctx lacks name by intention, and whether it lacks any.
func Lacks(ctx context.Context, name string) (lacks, around bool) {
	l, around := ctx.Value(lackingKey{}).(*lacking)
	for ; l != nil && !lacks; l, _ = l.Context.Value(lackingKey{}).(*lacking) {
		lacks = l.names.has(name)
	}
	return lacks, around
}
