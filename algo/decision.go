package algo

import (
	"math"
	"time"
)

// Forever is the RetryAfter of a cost that the limit can never admit.
const Forever = time.Duration(math.MaxInt64)

// Decision is the answer to one Acquire, by value.
//
// Durations are rounded up to whole nanoseconds. After RetryAfter the same
// request is admitted, unless other requests for the key are admitted in
// between; one nanosecond earlier it is denied.
type Decision struct {
	// Allowed reports whether the units were charged.
	Allowed bool
	// Reason says why the request was denied; it is Admitted otherwise.
	Reason Reason
	// Source says where the decision was made.
	Source Source
	// Banned reports whether the request was denied because its key is banned (see
	// [Ban]) or listed (see [DenyList], [DenyAll]), and not for a quota.
	Banned bool
	// Delay is the time after which an admitted request may start. Limiters
	// never sleep; the adapters, Wait and Sleep do.
	Delay time.Duration
	// Limit is the most units that fit at once: the burst, the window's quota,
	// or the in-flight limit.
	Limit int64
	// Remaining is the number of units that would be admitted without delay
	// after this decision.
	Remaining int64
	// RetryAfter is the time after which the same request fits: 0 if it is
	// allowed, Forever if Reason is Never, or if Reason is Overload and the time
	// left to the request is shorter than it would take.
	RetryAfter time.Duration
	// NextAfter is the time until one unit more than Remaining is available;
	// 0 when nothing is spent.
	NextAfter time.Duration
	// ResetAfter is the time until the whole quota is available.
	ResetAfter time.Duration
}

// Reason says why a request was denied.
type Reason uint8

// The reasons. An adapter answers Quota with 429 or RESOURCE_EXHAUSTED and
// Overload with 503 or UNAVAILABLE.
const (
	// Admitted: not denied.
	Admitted Reason = iota
	// Quota: the key has spent its quota; RetryAfter says when it can continue.
	Quota
	// Overload: the service is at capacity, for all keys.
	Overload
	// Never: the cost is larger than the limit can ever admit.
	Never
)

// String returns the reason in lower case, for logs.
func (r Reason) String() string {
	return nameOf(int(r), "admitted", "quota", "overload", "never")
}

// Source says where a decision was made.
type Source uint8

// The sources.
const (
	// SourceLocal: a limiter in this process.
	SourceLocal Source = iota
	// SourceRemote: the shared store.
	SourceRemote
	// SourceDenyCache: a denial that an earlier remote answer proves.
	SourceDenyCache
	// SourceBlock: a block of units prepaid at the shared store.
	SourceBlock
	// SourceFallback: a local limiter, because the shared store was unavailable.
	SourceFallback
	// SourceOff: the limit is switched off.
	SourceOff
	// SourceShadowed: a shadow limit, which admits everything; see [Shadow].
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
