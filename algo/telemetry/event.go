package telemetry

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Observer is called once for each decision, in the goroutine of the request, before the handler
// runs, and by many goroutines at once. It must not block. An observer's panic is handled like the
// handler's, and the lease is released.
type Observer func(Event)

// Event describes one decision.
type Event struct {
	// Context is the context of the request, with its span. It is nil in events that the program makes
	// itself.
	Context context.Context
	// At is the time of the decision. Observers need not read the clock.
	At time.Time
	// Transport is the protocol of the request.
	Transport Transport
	// Client is true for limits on outgoing requests.
	Client bool
	// Result is the fate of the request, or of the message of a stream.
	Result Result
	// Policy is the name of the limit.
	Policy string
	// Method is the full method of a call, empty for HTTP. In a tap handle, and
	// behind grpc.UnknownServiceHandler, the client chooses it.
	Method string
	// Decision is the decision of the limiter. It is zero if the limiter was not
	// called or failed, but has Reason Never if the request was denied for a
	// missing key. Its Delay is the wait of the request before the handler, or
	// the one it would have had.
	Decision algo.Decision
	// Rate is the learned rate in force for the key, in units a second; 0 unless the limit learns
	// (package algo/learn).
	Rate float64
	// Waited is the duration of the decision: in the queue of an in-flight
	// limiter, on the way to Redis, sleeping out a Delay, and in a client until
	// the server is ready. It is 0 if the limiter was not called.
	Waited time.Duration
	// Status is the status of a rejected request, 0 otherwise: 429, 503 or, for a
	// missing key, 401 for HTTP, the number of the code for gRPC.
	Status int
	// Cost is the requested number of units.
	Cost int64
	// KeyHash distinguishes keys without naming them, see keyfunc.Hash. It is keyfunc.Hash("~missing") for
	// requests without the identity that the limit counts, 0 if the key function failed.
	KeyHash uint64
	// Sent is this limit's information in the response.
	Sent Sent
	// Err is the reason why no decision was possible or the request was
	// abandoned; keyfunc.ErrNoKey if it was denied for a missing key, and
	// context.DeadlineExceeded if it could not have ended in time. It may contain input of the client; do not send it back.
	Err error
}

// Sent is the information about one limit in a response, in its encoding there.
// It is zero if Client is set, and has no fields for a limit that is off or in
// shadow mode. The response may differ from it: a handler given to
// httpmw.WithDenied may change the fields, and with several limits on one call
// the longest pushback is sent.
type Sent struct {
	// Policy is the item of the RateLimit-Policy field or trailer,
	// `"burst";q=20;w=2`, or the value of X-RateLimit-Limit.
	Policy string
	// Limit is the item of the RateLimit field or trailer, `"burst";r=0;t=1`, or
	// the value of X-RateLimit-Remaining. The X-RateLimit fields are from the
	// tightest limit of the request.
	Limit string
	// Reset is the value of X-RateLimit-Reset, empty with the standard fields.
	Reset string
	// RetryAfter is Retry-After, in whole seconds, or the delay of RetryInfo; 0
	// if there is none.
	RetryAfter time.Duration
	// Pushback is grpc-retry-pushback-ms of package grpcmw: milliseconds, or -1 for no retry; 0 if
	// there is none.
	Pushback int32
}

// Transport is the protocol of a request.
type Transport uint8

// The transports.
const (
	HTTP Transport = iota
	GRPC
)

// String returns "http" or "grpc".
func (t Transport) String() string {
	if t == GRPC {
		return "grpc"
	}
	return "http"
}

// Result is the fate of a request.
type Result uint8

// The results.
const (
	// Allowed: the request continued.
	Allowed Result = iota
	// Denied: the limit denied the request.
	Denied
	// Canceled: the client left before the request could start. Nothing was sent
	// to it and nothing remains charged.
	Canceled
	// FailedOpen: no decision was possible, and the request continued.
	FailedOpen
	// FailedClosed: no decision was possible, and the request was denied.
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
