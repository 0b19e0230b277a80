package adaptive

import "context"

// Class is the importance of a request to the service. Under overload requests of a
// lower class are denied before requests of a higher one ([WithPriorities]).
type Class uint8

// The classes, most important first. A request without a class is Normal; a value
// beyond these counts as Sheddable, the lowest.
const (
	Critical  Class = iota // costs money or trust when it fails: payments, health
	High                   // a person waits for it
	Normal                 // the default
	Low                    // is repeated if it fails: retries, prefetching
	Sheddable              // can be lost: batch work, crawlers
	classes
)

// String returns the class in lower case, for logs.
func (c Class) String() string {
	return [...]string{"critical", "high", "normal", "low", "sheddable"}[c.clamp()]
}

func (c Class) clamp() Class { return min(c, Sheddable) }

type classKey struct{}

// WithClass returns a context with the class of a request, which a limiter with
// [WithPriorities] reads. Let the server decide the class: clients that may state
// their own will all state Critical.
func WithClass(ctx context.Context, c Class) context.Context {
	return context.WithValue(ctx, classKey{}, c.clamp())
}

// ClassFrom returns the class of a request, Normal by default.
func ClassFrom(ctx context.Context) Class {
	if c, ok := ctx.Value(classKey{}).(Class); ok {
		return c.clamp()
	}
	return Normal
}
