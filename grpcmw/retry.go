package grpcmw

import (
	"context"
	"fmt"

	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/algo"
)

// attemptsKey is the metadata of gRFC A6 that a client adds to every attempt
// but the first: how many there have been.
const attemptsKey = "grpc-previous-rpc-attempts"

// WithRetryReserve keeps a share of the limit, above 0 and below 1, for first
// attempts: a retry that would leave less than share*Limit remaining is
// refused with UNAVAILABLE and told not to try again. So retries are the first
// to go when capacity runs out, and do not keep an overloaded server
// overloaded. The default is to treat all attempts alike.
//
// It is meant for limits of what the server can carry, not for one on trial:
// what algo.Shadow admits looks like any admission, and retries would be refused. The attempt is counted
// by the client; one that lies about it is treated like a first attempt, no
// better.
func WithRetryReserve(share float64) Option {
	return Option{"WithRetryReserve", func(s *settings) error {
		s.retryReserve = share
		if !(share > 0 && share < 1) {
			return fmt.Errorf("is %v, want above 0 and below 1", share)
		}
		return nil
	}}
}

// refusesRetry reports whether what d leaves is kept for first attempts, and
// the call is not one.
func (g *gate) refusesRetry(ctx context.Context, d *algo.Decision) bool {
	return g.retryReserve > 0 && binding(d) &&
		float64(d.Remaining) < g.retryReserve*float64(d.Limit) &&
		isRetry(ctx)
}

// binding reports whether a decision speaks of a limit that is in force.
func binding(d *algo.Decision) bool {
	return d.Limit > 0 && d.Source != algo.SourceOff && d.Source != algo.SourceShadowed
}

func isRetry(ctx context.Context) bool {
	attempts := metadata.ValueFromIncomingContext(ctx, attemptsKey)
	return len(attempts) > 0 && attempts[0] != "0"
}
