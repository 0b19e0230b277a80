package httpmw

import "github.com/sluice-go/sluice/algo"

// Event tells an observer of one decision.
type Event struct {
	// Policy is the name of the limit.
	Policy string
	// Result is what became of the request.
	Result Result
	// Decision is what the limiter said; zero if it was not asked or failed,
	// with Reason Never if the request was refused for lack of a key ([Deny]).
	// Its Delay is what the request waited for before the handler, or would
	// have had to.
	Decision algo.Decision
	// Status is the status of a refusal: 429 or 503; 0 if there was none.
	Status int
	// Cost is the units that were asked for.
	Cost int64
	// KeyHash tells keys apart without naming them, see keyfunc.Hash. 0: no key.
	KeyHash uint64
	// Err is why the request could not be decided or was given up. It may
	// contain what the client sent; do not send it back.
	Err error
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
