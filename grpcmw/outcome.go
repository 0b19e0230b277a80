package grpcmw

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/inflight"
)

// handled returns the outcome of a call on the server.
//
// A call that the client gave up, or whose deadline has passed, stays charged:
// otherwise a client could avoid the charge by hanging up in time. It is untimed,
// because the client chose the time. A call that an inner limiter denied stays charged
// too, because it has arrived; but it did no work, so it is canceled where the outcome
// matters: for a slot, for FailuresOnly and with WithRefundIf.
func (ps *policies) handled(ctx context.Context, err error) algo.Outcome {
	outcome := algo.Succeeded
	switch {
	case err == nil:
	case !deniedFurtherIn(err):
		outcome = inflight.OfCode(uint32(codeOf(err)))
	case ps.needsOutcome:
		return algo.Canceled
	default:
		return algo.Failed | algo.Untimed
	}
	if ctx.Err() != nil || err != nil && expired(ctx) {
		return outcome | algo.Untimed // the client chose the time
	}
	return outcome
}

// codeOf returns the code that the server sends for err.
func codeOf(err error) codes.Code {
	if st, ok := status.FromError(err); ok {
		return st.Code()
	}
	return status.FromContextError(err).Code()
}

// expired reports whether the deadline of ctx has passed, even if its timer has not
// fired yet.
func expired(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= 0
}

// deniedFurtherIn reports whether err is the denial of an inner limiter on the
// same call, before any work.
func deniedFurtherIn(err error) bool {
	d := denialIn(err)
	return d != nil && !d.begun
}

// outcome returns the outcome of a call on the server, or Canceled if WithRefundIf refunds its
// code. A client that has gone gets no refund for an outcome that it can cause by leaving.
func (i *interceptor) outcome(ctx context.Context, ps *policies, err error) algo.Outcome {
	if i.Own.refundIf != nil {
		code := codeOf(err)
		stayed := ctx.Err() == nil && !expired(ctx)
		answered := code != codes.Canceled && inflight.OfCode(uint32(code)) != algo.Failed
		if (stayed || answered) && i.Own.refundIf(code) {
			return algo.Canceled
		}
	}
	return ps.handled(ctx, err)
}
