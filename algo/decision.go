package algo

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/internal/cause"
)

// Forever is the RetryAfter of a denial for which waiting is useless. [Sleep] and [Wait] return
// [ErrWait] for it; time.Sleep would sleep for 292 years.
const Forever = time.Duration(math.MaxInt64)

// Decision is the answer to one Acquire, by value.
//
// Durations are rounded up to whole nanoseconds. After RetryAfter the limit admits the same
// request, unless it admits others for the key in between; one nanosecond earlier it denies it.
// (After a ban, see package guard, the limit behind it decides and may deny.)
type Decision struct {
	// Allowed reports whether the units were charged.
	Allowed bool
	// Reason says why the request was denied, and so where the blame lies; otherwise it is Admitted.
	Reason Reason
	// Cause refines Reason, for logs; CauseNone if the limiter states none.
	Cause Cause
	// Source says where the decision was made.
	Source Source
	// Trial is the Reason of a limit on trial that would have denied; see [Shadow].
	Trial Reason
	// Delay is the time after which an admitted request may start. Limiters do not sleep; adapters,
	// Wait and Sleep do.
	Delay time.Duration
	// Limit is the most units that fit at once: the burst, the window's quota,
	// or the in-flight limit.
	Limit int64
	// Remaining is the number of units that would be admitted without delay
	// after this decision.
	Remaining int64
	// RetryAfter is the time after which the same request fits, see [Sleep]: 0 if it is allowed,
	// Forever if Reason is Never, the key is banned for ever, or Reason is Overload and the request's
	// deadline is too near. Of a limit on trial it is how long the limit would have delayed the
	// request.
	RetryAfter time.Duration
	// NextAfter is the time until one unit more than Remaining is available;
	// 0 when nothing is spent.
	NextAfter time.Duration
	// ResetAfter is the time until the whole quota is available.
	ResetAfter time.Duration
}

// InForce reports whether d comes from a limit that applied to the request: a denial, or an
// admission that states a Limit, unless the limit is on trial or off. Adapters show only such
// decisions to clients.
func (d *Decision) InForce() bool {
	return !d.Allowed || d.Limit > 0 && d.Source < SourceOff
}

// Reason says why a request was denied. The reasons ascend in gravity: if several limits deny, the
// gravest counts.
type Reason uint8

// The reasons. An adapter answers Overload with 503 or UNAVAILABLE, and the others
// with 429 or RESOURCE_EXHAUSTED.
const (
	// Admitted: not denied.
	Admitted Reason = iota
	// Quota: the key has spent its own limit; RetryAfter says when it can continue.
	Quota
	// Overload: the service is at capacity for all keys, or has no room for one more
	// key.
	Overload
	// Banned: the key must stop, until RetryAfter or for ever; see package guard and [DenyAll].
	Banned
	// Never: the cost is larger than the limit can ever admit.
	Never
)

// String returns the reason in lower case, for logs.
func (r Reason) String() string {
	return nameOf(int(r), "admitted", "quota", "overload", "banned", "never")
}

// Cause refines the reason of a denial, for logs and operators: no status or wait depends on it. Its
// String is the name in lower case, such as "queue", or "" for CauseNone.
type Cause = cause.Cause

// The causes.
const (
	CauseNone      = cause.None      // not stated
	CauseLimit     = cause.Limit     // no free slot
	CauseKeys      = cause.Keys      // no room for one more key
	CauseDeadline  = cause.Deadline  // the time left to the request is shorter than it would take
	CauseQueue     = cause.Queue     // no room in the queue, or no slot within its longest wait
	CauseProcessor = cause.Processor // too many goroutines wait for the processor
	CauseLatency   = cause.Latency   // the limit is low because responses take far longer than usual
	CauseHang      = cause.Hang      // the limit is low because nothing completes
	CausePriority  = cause.Priority  // the slots left are for requests of a higher class
	CauseShare     = cause.Share     // the slots left are for tenants within their share
	CauseStore     = cause.Store     // the shared store was unavailable
)

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
	// SourceTrial: a limit on trial, which admits everything; see [Shadow].
	SourceTrial
)

// String returns the source in lower case, for logs.
func (s Source) String() string {
	return nameOf(int(s), "local", "remote", "deny-cache", "block", "fallback", "off", "trial")
}

func nameOf(i int, names ...string) string {
	if i < len(names) {
		return names[i]
	}
	return "unknown"
}
