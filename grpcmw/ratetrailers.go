package grpcmw

import (
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/internal/option"
)

// WithRateTrailers sends the clients of admitted calls what is left, in the
// trailers "ratelimit-policy" and "ratelimit", in the form of the HTTP fields of
// draft-ietf-httpapi-ratelimit-headers-11. Several limits on a call send several
// values. It is off by default, and never uses headers, which would commit the
// client to the attempt and disable its retry policy. Streams that are not charged
// when they are opened have no such trailers.
func WithRateTrailers() Option {
	return newOption("WithRateTrailers", option.Sets(func(s *settings) { s.Own.rateTrailers = true }))
}

func rateTrailer(v *verdict) (md metadata.MD) {
	parts := v.Parts()
	for k := range parts {
		policy, limit := rateItems(&parts[k])
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

// rateItems returns the trailers' values, empty if no limit was in force for the
// call. policy is empty if the limiter has no description.
func rateItems(p *part) (policy, limit string) {
	d := &p.Decision
	if d.Limit <= 0 || !p.InForce(d) {
		return "", ""
	}
	item := p.PolicyItem(d.Limit)
	if item.Described {
		policy = item.Text
	}
	return policy, p.LimitItem(d, item)
}
