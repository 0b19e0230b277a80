package grpcmw

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
)

// handled tells the limiter how a call went on the server.
//
// A call that the client gave up stays charged: the work was begun, and
// otherwise a client could work for nothing by hanging up in time. A call that
// an inner limiter denied is given back: nothing was begun.
func handled(ctx context.Context, err error) algo.Outcome {
	switch {
	case err == nil:
		return algo.Succeeded
	case deniedFurtherIn(err):
		return algo.Canceled
	case errors.Is(ctx.Err(), context.Canceled):
		return algo.Ignored
	case troubled(status.Code(err)):
		return algo.Failed
	}
	return algo.Ignored // the request was at fault, and answering it is quick
}

// answered tells the limiter how a call went on the client. That the server
// found fault with the request is a success of the server.
func answered(ctx context.Context, err error) algo.Outcome {
	switch {
	case err == nil:
		return algo.Succeeded
	case errors.Is(ctx.Err(), context.Canceled) || status.Code(err) == codes.Canceled:
		return algo.Ignored
	case troubled(status.Code(err)):
		return algo.Failed
	}
	return algo.Succeeded
}

// troubled reports whether a code speaks of the server's state rather than of
// the request.
func troubled(c codes.Code) bool {
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
