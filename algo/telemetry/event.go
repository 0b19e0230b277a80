package telemetry

import (
	"errors"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Observer is called once for each decision, in the goroutine of the request,
// before the handler runs, and from many goroutines at once. It must not block.
// If it panics, so does the request: it is answered as a panic of the handler
// would be, and what it held is released.
type Observer func(Event)

// Event tells of one decision.
type Event struct {
	// At is when the answer was known, so that observers need not read the
	// clock.
	At time.Time
	// Transport is how the request came, or went if Client is set.
	Transport Transport
	// Client is set where the limit stands before outgoing requests.
	Client bool
	// Result is what became of the request, or of the message of a stream.
	Result Result
	// Policy is the name of the limit.
	Policy string
	// Method is the full method of a call, empty over HTTP. In a tap handle, and
	// behind grpc.UnknownServiceHandler, it is whatever the client sent.
	Method string
	// Decision is what the limiter said; zero if it was not asked or failed,
	// with Reason Never if the request was refused for lack of a key. Its Delay
	// is what the request waited for before the handler, or would have had to.
	Decision algo.Decision
	// Waited is the time from the question to the answer: in the queue of an
	// in-flight limiter, on the way to Redis, sleeping out a Delay, and in a
	// client until the server is ready. 0 if the limiter was not asked.
	Waited time.Duration
	// Status is the status of a refusal, 0 if there was none: of HTTP 429 or
	// 503, of gRPC the number of the code.
	Status int
	// Cost is the units that were asked for.
	Cost int64
	// KeyHash tells keys apart without naming them, see keyfunc.Hash. 0: no key.
	KeyHash uint64
	// Sent is what the answer tells the client of this limit.
	Sent Sent
	// Err is why the request could not be decided or was given up. It may
	// contain what the client sent; do not send it back.
	Err error
}

// Shadowed reports whether the request was let through by a limit on trial
// (algo.Shadow) that would have denied it; Decision.Reason tells why.
func (e *Event) Shadowed() bool {
	return e.Result == Allowed && e.Decision.Source == algo.SourceShadowed && e.Decision.Reason != algo.Admitted
}

// Why is the reason of a denial, or of what a limit on trial would have denied;
// Admitted of everything else. It is Decision.Reason, but where the limiter
// admitted what could not wait for it: a Delay that outlasts the caller is
// Quota, a retry that is refused to keep room for first attempts is Overload.
func (e *Event) Why() algo.Reason {
	const unavailable = 14 // the code of gRPC
	switch {
	case e.Result != Denied && !e.Shadowed():
		return algo.Admitted
	case e.Decision.Reason != algo.Admitted:
		return e.Decision.Reason
	case errors.Is(e.Err, algo.ErrCost):
		return algo.Never
	case e.Transport == GRPC && e.Status == unavailable:
		return algo.Overload
	}
	return algo.Quota
}

// Sent is what an answer tells the client of one limit, as it stands in the
// answer. Nothing is sent if Client is set, and no fields are told of a limit
// that is off or on trial. What else is on the way may add to it: a handler
// given to httpmw.WithDenied may change the fields, and of several limits on one
// call the longest pushback is sent.
type Sent struct {
	// Policy is the item of the RateLimit-Policy field or trailer,
	// `"burst";q=20;w=2`, or the value of X-RateLimit-Limit.
	Policy string
	// Limit is the item of the RateLimit field or trailer, `"burst";r=0;t=1`, or
	// the value of X-RateLimit-Remaining. The X-RateLimit fields are those of the
	// tightest limit of the request.
	Limit string
	// Reset is the value of X-RateLimit-Reset, empty with the standard fields.
	Reset string
	// RetryAfter is Retry-After, whole seconds, or the delay of RetryInfo; 0 if
	// there is none.
	RetryAfter time.Duration
	// Pushback is grpc-retry-pushback-ms: milliseconds, or -1 for no retry; 0 if
	// there is none.
	Pushback int32
}

// Transport is a protocol.
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

// Result is what became of a request.
type Result uint8

// The results.
const (
	// Allowed: the request went on.
	Allowed Result = iota
	// Denied: the limit had no room.
	Denied
	// Canceled: the client went away before the request could start; nothing
	// was sent to it and nothing stays charged.
	Canceled
	// FailedOpen: it could not be decided, and went on.
	FailedOpen
	// FailedClosed: it could not be decided, and was refused.
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
