package client

import (
	"context"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/internal/pacing"
	"github.com/sluice-go/sluice/internal/serverwait"
)

// obey remembers the wait that the answer of a server asks for.
func (p *pacer) obey(ctx context.Context, c pacing.Call, err error, header, trailer metadata.MD) {
	st, denied := denialOf(err)
	var wait time.Duration
	if denied {
		wait = max(retryDelay(st), pushbackIn(trailer))
	}
	if p.serverWait != nil {
		wait = max(wait, p.serverWait(header, trailer))
	}
	denied = denied && (st.Code() == codes.ResourceExhausted || wait > 0)
	p.Answered(ctx, c, learn.Answer{Denied: denied, Wait: wait})
}

// denialOf returns the status of err, and whether a server denied, rather than a limit of this
// client.
func denialOf(err error) (*status.Status, bool) {
	st, ok := status.FromError(err)
	denies := st.Code() == codes.ResourceExhausted || st.Code() == codes.Unavailable
	return st, ok && denies && !strings.HasPrefix(st.Message(), clientSide)
}

// QuotaWait reads the metadata in which many services say when a quota is back, for
// [WithServerWait]: x-ratelimit-remaining and x-ratelimit-reset and their like, as
// QuotaWait of package httpmw/client describes them, and retry-after-ms, in headers and trailers.
func QuotaWait(header, trailer metadata.MD) time.Duration {
	return max(serverwait.Quota(header, true, time.Now), serverwait.Quota(trailer, true, time.Now))
}

// retryDelay returns the delay of the status's RetryInfo; 0 without one.
func retryDelay(st *status.Status) time.Duration {
	for _, d := range st.Proto().GetDetails() {
		var info errdetails.RetryInfo
		if d.MessageIs(&info) && d.UnmarshalTo(&info) == nil {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// pushbackIn returns the wait in the trailer of gRFC A6; 0 without one, and if it asks
// for no further attempt.
func pushbackIn(trailer metadata.MD) time.Duration {
	values := trailer["grpc-retry-pushback-ms"]
	if len(values) != 1 {
		return 0
	}
	wait, _ := serverwait.Parse(values[0], "ms") // 0 for -1
	return wait
}
