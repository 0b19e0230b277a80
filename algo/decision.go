package algo

import (
	"math"
	"time"
)

// Forever is the RetryAfter of a cost that can never fit.
const Forever = time.Duration(math.MaxInt64)

// Decision is the answer to one Acquire, by value.
//
// Durations are rounded up to whole nanoseconds: after RetryAfter the same
// request succeeds if nobody else spends in between, one nanosecond earlier
// it is denied again.
type Decision struct {
	// Allowed reports whether the units were charged.
	Allowed bool
	// Reason tells why a request was denied; Admitted otherwise.
	Reason Reason
	// Source tells who decided.
	Source Source
	// Delay above 0 means: admitted, but start only after Delay. Limiters
	// never sleep; adapters and Wait do.
	Delay time.Duration
	// Limit is the most that fits at once: the burst, the window's quota, or
	// the most in flight.
	Limit int64
	// Remaining is how many units would be admitted now, after this decision,
	// to start at once.
	Remaining int64
	// RetryAfter is 0 if allowed, Forever if Reason is Never.
	RetryAfter time.Duration
	// NextAfter is the time until one unit more than Remaining is there;
	// 0 when nothing is spent.
	NextAfter time.Duration
	// ResetAfter is the time until the whole quota is there again.
	ResetAfter time.Duration
}

// Reason tells why a request was denied.
type Reason uint8

// The reasons. An adapter answers Quota with 429 or RESOURCE_EXHAUSTED and
// Overload with 503 or UNAVAILABLE.
const (
	// Admitted: not denied.
	Admitted Reason = iota
	// Quota: the caller has spent what it was given; RetryAfter says when.
	Quota
	// Overload: the service cannot carry more now, whoever asks.
	Overload
	// Never: the cost is larger than the limit can ever hold.
	Never
)

// String returns the reason in lower case, for logs.
func (r Reason) String() string {
	return nameOf(int(r), "admitted", "quota", "overload", "never")
}

// Source tells who made a decision.
type Source uint8

// The sources.
const (
	// SourceLocal: a limiter in this process.
	SourceLocal Source = iota
	// SourceRemote: the shared store.
	SourceRemote
	// SourceDenyCache: a denial that an earlier remote answer proves.
	SourceDenyCache
	// SourceBlock: spent from a prepaid block of a remote bucket.
	SourceBlock
	// SourceFallback: the shared store was out of reach.
	SourceFallback
	// SourceOff: nothing was limited, on purpose.
	SourceOff
	// SourceShadowed: it would have been denied, and was let through.
	SourceShadowed
)

// String returns the source in lower case, for logs.
func (s Source) String() string {
	return nameOf(int(s), "local", "remote", "deny-cache", "block", "fallback", "off", "shadowed")
}

func nameOf(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}
