package grpcmw

import (
	"context"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/algo"
)

// WithRateTrailers tells clients of admitted calls how much is left, in the
// trailers "ratelimit-policy" and "ratelimit", which are written like the HTTP
// fields of draft-ietf-httpapi-ratelimit-headers-10. Several limits on a call
// give several values. It is off by default, and never uses headers: they would
// commit the client to the attempt, and its retry policy would be ignored.
// Streams that are not charged when they are opened have none.
func WithRateTrailers() Option {
	return Option{"WithRateTrailers", func(s *settings) error {
		s.rateTrailers = true
		return nil
	}}
}

// longestNumber is what an Integer of RFC 9651 can hold: 15 digits.
const longestNumber = 999_999_999_999_999

func (g *gate) tellRate(ctx context.Context, d *algo.Decision) {
	// The error says that the stream is over; nobody is left to tell.
	_ = grpc.SetTrailer(ctx, g.rateTrailer(d))
}

// rateTrailer has no policy if the limiter cannot describe itself, and nothing
// at all for a call that no limit was in force for.
func (g *gate) rateTrailer(d *algo.Decision) metadata.MD {
	if !binding(d) {
		return nil
	}
	p, ok := algo.Describe(g.limiter)
	if d.Limit == unbounded && (!ok || p.Unit == algo.ConcurrentRequests) {
		return nil
	}
	if !ok {
		p.Quota = d.Limit
	}
	md := metadata.MD{"ratelimit": {g.rateItem(d, p)}}
	if ok {
		md["ratelimit-policy"] = []string{g.policyItem(p)}
	}
	return md
}

func (g *gate) policyItem(p algo.Description) string {
	s := `"` + g.name + `";q=` + number(p.Quota)
	if p.Unit != algo.Requests {
		s += `;qu="` + p.Unit.String() + `"`
	}
	if p.Window > 0 {
		s += ";w=" + number(seconds(p.Window))
	}
	return s
}

// rateItem has no t when nothing is spent, where time plays no part, and when
// there will never be more.
func (g *gate) rateItem(d *algo.Decision, p algo.Description) string {
	s := `"` + g.name + `";r=` + number(d.Remaining)
	timed := p.Unit != algo.ConcurrentRequests && d.Remaining < p.Quota
	if timed && d.NextAfter > 0 && d.NextAfter != algo.Forever {
		s += ";t=" + number(seconds(d.NextAfter))
	}
	return s
}

func number(n int64) string { return strconv.FormatInt(min(max(n, 0), longestNumber), 10) }
