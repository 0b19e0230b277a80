package httpmw

import (
	"context"

	"github.com/sluice-go/sluice/algo"
)

// Denial describes a refused request to a handler given to [WithDenied].
type Denial struct {
	// Status is 429 if the client has used up its quota, 503 if the server
	// lacks capacity or could not decide, and the status of [WithMissingKey] if the request
	// has no key.
	Status int
	// Policy is the name of the limit, of several the one with the gravest reason; "" if
	// the request could not be decided.
	Policy string
	// Decision is the limiter's decision; its Cause is for logs.
	Decision algo.Decision
}

type denialKey struct{}

// DenialFrom returns the denial in the context of a handler given to [WithDenied], and
// false in other contexts.
func DenialFrom(ctx context.Context) (Denial, bool) {
	d, ok := ctx.Value(denialKey{}).(*Denial)
	if !ok {
		return Denial{}, false
	}
	return *d, true
}
