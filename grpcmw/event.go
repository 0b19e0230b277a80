package grpcmw

import (
	"google.golang.org/grpc/codes"

	"github.com/sluice-go/sluice/algo"
)

// Event tells an observer of one decision. Exempt calls are not decisions.
type Event struct {
	// Policy is the name of the limit.
	Policy string
	// Method is the full method of the call. In a tap handle, and behind
	// grpc.UnknownServiceHandler, it is whatever the client sent.
	Method string
	// Result is what became of the call, or of the message of a stream.
	Result Result
	// Decision is what the limiter said; zero if it was not asked or failed,
	// with Reason Never if the call was refused for lack of a key ([Deny]). Its
	// Delay has been slept out, or would have had to be.
	Decision algo.Decision
	// Code is the status code of a refusal; codes.OK if there was none.
	Code codes.Code
	// Cost is the units that were asked for.
	Cost int64
	// KeyHash tells keys apart without naming them, see keyfunc.Hash. 0: no key.
	KeyHash uint64
	// Err is why the call could not be decided or was given up. It may
	// contain what the client sent; do not send it back.
	Err error
}

// Result is what became of a call.
type Result uint8

const (
	// Allowed means that the call went on.
	Allowed Result = iota
	// Denied means that the limit had no room.
	Denied
	// Canceled means that the context ended before the call could start;
	// nothing stays charged.
	Canceled
	// FailedOpen means that it could not be decided, and went on.
	FailedOpen
	// FailedClosed means that it could not be decided, and was refused.
	FailedClosed
)

// String returns the result in lower case, for logs and metrics.
func (r Result) String() string {
	names := [...]string{"allowed", "denied", "canceled", "failed-open", "failed-closed"}
	if int(r) < len(names) {
		return names[r]
	}
	return "unknown"
}
