package client

import (
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/internal/serverwait"
)

// obey remembers the wait that the answer of a server asks for.
func (p *pacer) obey(c call, err error, header, trailer metadata.MD) {
	wait := askedBy(err, trailer)
	if p.serverWait != nil {
		wait = max(wait, p.serverWait(header, trailer))
	}
	p.waits.Update(c.place, wait)
	denied := status.Code(err) == codes.ResourceExhausted || status.Code(err) == codes.Unavailable && wait > 0
	for _, l := range p.learners {
		l.Answered(c.place.Key, learn.Answer{Sent: c.sent, Units: c.units, Denied: denied, Wait: wait})
	}
}

// askedBy is the wait that a denial of the server asks for.
func askedBy(err error, trailer metadata.MD) time.Duration {
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.ResourceExhausted && st.Code() != codes.Unavailable || strings.HasPrefix(st.Message(), clientSide) {
		return 0
	}
	return max(retryDelay(st), pushbackIn(trailer))
}

// QuotaWait reads the metadata in which many services say when a quota is back, for
// [WithServerWait]: x-ratelimit-remaining and x-ratelimit-reset and their like, as
// QuotaWait of package httpmw/client describes them, and retry-after-ms, in headers and trailers.
func QuotaWait(header, trailer metadata.MD) time.Duration {
	now := time.Now()
	return max(serverwait.Quota(header, true, now), serverwait.Quota(trailer, true, now))
}

// retryDelay is the delay of the status's RetryInfo, 0 without one.
func retryDelay(st *status.Status) time.Duration {
	for _, d := range st.Proto().GetDetails() {
		var info errdetails.RetryInfo
		if d.MessageIs(&info) && d.UnmarshalTo(&info) == nil {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// pushbackIn is the trailer of gRFC A6; 0 without one, and for one that asks for no
// further attempt.
func pushbackIn(trailer metadata.MD) time.Duration {
	values := trailer["grpc-retry-pushback-ms"]
	if len(values) != 1 {
		return 0
	}
	wait, _ := serverwait.Parse(values[0], "ms") // 0 for -1
	return wait
}
