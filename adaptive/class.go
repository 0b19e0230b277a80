package adaptive

import (
	"context"

	"github.com/sluice-go/sluice/internal/class"
)

// Class is the importance of a request to the service. Under overload requests of a
// lower class are denied before requests of a higher one ([WithPriorities]).
type Class = class.Class

// The classes, most important first. A request without a class is Normal; a value
// beyond these counts as Sheddable, the lowest.
const (
	Critical  Class = class.Critical  // costs money or trust when it fails: payments, health
	High      Class = class.High      // a person waits for it
	Normal    Class = class.Normal    // the default
	Low       Class = class.Low       // is repeated if it fails: retries, prefetching
	Sheddable Class = class.Sheddable // can be lost: batch work, crawlers
	classes         = class.Count
)

// WithClass returns a context with the class of a request, which a limiter with
// [WithPriorities] reads. The server should choose the class, because clients would
// all choose Critical. Priority and PriorityOptions of packages hints read the class
// that a trusted caller states.
func WithClass(ctx context.Context, c Class) context.Context { return class.With(ctx, c) }

// ClassFrom returns the class of a request, Normal by default.
func ClassFrom(ctx context.Context) Class { return class.From(ctx) }
