package grpcmw

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
)

// handled is the outcome of a call on the server.
//
// A call that the client gave up stays charged: the work was begun, and
// otherwise a client could avoid the charge by hanging up in time. A call that
// an inner limiter denied is given back: nothing was begun.
func handled(ctx context.Context, err error) algo.Outcome {
	switch {
	case err == nil:
		return algo.Succeeded
	case deniedFurtherIn(err):
		return algo.Canceled
	case errors.Is(ctx.Err(), context.Canceled):
		return algo.Ignored
	case serverFault(status.Code(err)):
		return algo.Failed
	}
	return algo.Ignored // the request was at fault, and answering it is quick
}

// answered is the outcome of a call on the client. A server that rejects an
// invalid request has succeeded.
func answered(ctx context.Context, err error) algo.Outcome {
	switch {
	case err == nil:
		return algo.Succeeded
	case errors.Is(ctx.Err(), context.Canceled) || status.Code(err) == codes.Canceled:
		return algo.Ignored
	case serverFault(status.Code(err)):
		return algo.Failed
	}
	return algo.Succeeded
}

// serverFault reports whether a code is about the server's state rather than
// the request.
func serverFault(c codes.Code) bool {
	switch c {
	case codes.Unknown, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted,
		codes.Internal, codes.Unavailable, codes.DataLoss:
		return true
	}
	return false
}

// deniedFurtherIn reports whether err is the denial of an inner limiter on the
// same call, before any work.
func deniedFurtherIn(err error) bool {
	d := denialIn(err)
	return d != nil && !d.begun
}
