package adaptive

import "context"

// Class is how much a request matters to the service. Under overload a request
// of a lower class is shed before one of a higher class.
type Class uint8

// The classes, the most important first. A request without a class is Normal;
// a value beyond these is read as Sheddable, the lowest.
const (
	Critical  Class = iota // costs money or trust when it fails: payments, health
	High                   // a person waits for it
	Normal                 // the default
	Low                    // is repeated if it fails: retries, prefetching
	Sheddable              // is not missed: batch work, crawlers
	classes
)

// String returns the class in lower case, for logs.
func (c Class) String() string {
	return [...]string{"critical", "high", "normal", "low", "sheddable"}[c.clamp()]
}

func (c Class) clamp() Class { return min(c, Sheddable) }

type classKey struct{}

// WithClass puts the class of a request into its context, where a limiter with
// [WithPriorities] reads it. The server decides: a class that a client states
// is a class that every client will state.
func WithClass(ctx context.Context, c Class) context.Context {
	return context.WithValue(ctx, classKey{}, c.clamp())
}

// ClassFrom returns the class of a request, Normal if none was put there.
func ClassFrom(ctx context.Context) Class {
	if c, ok := ctx.Value(classKey{}).(Class); ok {
		return c.clamp()
	}
	return Normal
}
