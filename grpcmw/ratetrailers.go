package grpcmw

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// WithRateTrailers sends the clients of admitted calls how much is left, in the
// trailers "ratelimit-policy" and "ratelimit", which are written like the HTTP
// fields of draft-ietf-httpapi-ratelimit-headers-11. Several limits on a call
// give several values. It is off by default, and never uses headers: they would
// commit the client to the attempt, and its retry policy would be ignored.
// Streams that are not charged when they are opened have none.
func WithRateTrailers() Option {
	return newOption("WithRateTrailers", func(s *settings) error {
		s.Own.rateTrailers = true
		return nil
	})
}

func (i *interceptor) setRateTrailer(ctx context.Context, lease *admission.Lease) {
	// The error says that the call is over; no client is left.
	_ = grpc.SetTrailer(ctx, i.rateTrailer(lease))
}

func (i *interceptor) rateTrailer(lease *admission.Lease) (md metadata.MD) {
	for k, p := range lease.Policies {
		one := i.named(p.Name)
		policy, limit := one.rateItems(&lease.Of(k).Decision)
		if limit == "" {
			continue
		}
		if md == nil {
			md = metadata.MD{}
		}
		md.Append("ratelimit", limit)
		if policy != "" {
			md.Append("ratelimit-policy", policy)
		}
	}
	return md
}

// rateItems are empty for a call that no limit was in force for. policy is
// empty if the limiter has no description.
func (i *interceptor) rateItems(d *algo.Decision) (policy, limit string) {
	if d.Limit <= 0 || !i.InForce(d) {
		return "", ""
	}
	p := i.PolicyItem(d.Limit)
	if p.Described {
		policy = p.Text
	}
	return policy, i.LimitItem(d, p)
}
