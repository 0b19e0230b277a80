package grpcmw

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// handled is the outcome of a call on the server.
//
// A call that the client gave up, or whose deadline has passed, stays charged:
// the work was begun, and otherwise a client could avoid the charge by hanging up
// in time. It is no sample, because the client chose the time. A call that an inner
// limiter denied has arrived, and stays charged too; but its work was not done, so it
// is canceled where the outcome matters: for a slot, for FailuresOnly and with WithRefundIf.
func (ps *policies) handled(ctx context.Context, err error) algo.Outcome {
	outcome := algo.Succeeded
	switch {
	case err != nil && deniedFurtherIn(err):
		if ps.needsOutcome {
			return algo.Canceled
		}
		return algo.Failed | algo.Untimed
	case err != nil:
		outcome = algo.Failed
	}
	if ctx.Err() != nil || err != nil && (expired(ctx) || !serverFault(err)) {
		return outcome | algo.Untimed // the client chose the time, or the request was at fault, and answering it is quick
	}
	return outcome
}

// expired reports whether the deadline of ctx has passed, also where its timer
// has not been served yet.
func expired(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= 0
}

func serverFault(err error) bool { return admission.ServerFault(uint32(status.Code(err))) }

// deniedFurtherIn reports whether err is the denial of an inner limiter on the
// same call, before any work.
func deniedFurtherIn(err error) bool {
	d := denialIn(err)
	return d != nil && !d.begun
}

// outcome is the outcome of a call on the server, or Canceled if the charge is given back for
// the answer of the handler. No client can avoid the charge by hanging up in time.
func (i *interceptor) outcome(ctx context.Context, ps *policies, err error) algo.Outcome {
	o := ps.handled(ctx, err)
	if i.Own.refundIf == nil || ctx.Err() != nil || expired(ctx) {
		return o
	}
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err) // as the server does
	}
	if i.Own.refundIf(st.Code()) {
		return algo.Canceled
	}
	return o
}
