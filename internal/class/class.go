// Package class is the importance of a request, as limiters and adapters pass it on.
package class

import "context"

// Class is the importance of a request to the service. Under overload requests of a
// lower class are denied before requests of a higher one.
type Class uint8

// The classes, most important first.
const (
	Critical Class = iota
	High
	Normal
	Low
	Sheddable
	Count
)

// String returns the class in lower case, for logs.
func (c Class) String() string {
	return [...]string{"critical", "high", "normal", "low", "sheddable"}[c.clamp()]
}

func (c Class) clamp() Class { return min(c, Sheddable) }

type contextKey struct{}

// With returns a context with the class of a request.
func With(ctx context.Context, c Class) context.Context {
	return context.WithValue(ctx, contextKey{}, c.clamp())
}

// From returns the class of a request, Normal by default.
func From(ctx context.Context) Class {
	c, _ := Lookup(ctx)
	return c
}

// Lookup also reports whether the request has a class.
func Lookup(ctx context.Context) (Class, bool) {
	if c, ok := ctx.Value(contextKey{}).(Class); ok {
		return c.clamp(), true
	}
	return Normal, false
}
