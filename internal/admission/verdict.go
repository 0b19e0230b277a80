package admission

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/keytext"
)

// Verdict is the decision of all policies on a call, or on a message of a stream.
type Verdict[C any] struct {
	Result telemetry.Result
	Blame  Blame         // of a refusal
	Wait   time.Duration // of a refusal: until a retry, spread; algo.Forever if retrying cannot succeed
	Err    error         // of Canceled, FailedOpen and FailedClosed; keyfunc.ErrNoKey without a key; context.DeadlineExceeded of an overload that no deadline allows

	started time.Time     // when the limiters were asked; only with an observer
	all     algo.Decision // of several policies together
	count   int
	room    [Few]Part[C]
	more    []Part[C] // in place of room, for more policies
}

// Few is how many policies need no allocation. It is small, because each call clears a Verdict.
const Few = 4

// Part is one policy's part in a verdict.
type Part[C any] struct {
	*Policy[C]
	Request  algo.Request // its limiter is the one that was chosen for the call
	Decision algo.Decision
}

// Denied reports whether the policy had no room; false if it was not evaluated, after
// another one had denied.
func (p *Part[C]) Denied() bool { return !p.Decision.Allowed && !p.Unknown() }

// Unknown reports whether the policy was not evaluated.
func (p *Part[C]) Unknown() bool { return !p.Decision.Allowed && p.Decision.Reason == algo.Admitted }

// Class returns the class of the call's key.
func (p *Part[C]) Class() string { return keytext.ClassOf(p.Request.Key) }

// Classes lists all classes of keys.
var Classes = keytext.Classes

// Parts returns the policies that decided, in their order, or the one that could not.
func (v *Verdict[C]) Parts() []Part[C] {
	if v.more != nil {
		return v.more
	}
	return v.room[:v.count]
}

// Decision returns the decision of all policies together; zero if no limiter decided.
func (v *Verdict[C]) Decision() *algo.Decision {
	if v.count == 1 {
		return &v.Parts()[0].Decision
	}
	return &v.all
}

// Pass reports whether the call may start.
func (v *Verdict[C]) Pass() bool { return v.Blame == nobody }

// Gravest returns the first policy that denied for the gravest reason.
func (v *Verdict[C]) Gravest() *Part[C] {
	parts := v.Parts()
	worst := &parts[0]
	for i := range parts {
		if p := &parts[i]; p.Denied() && (!worst.Denied() || p.Decision.Reason > worst.Decision.Reason) {
			worst = p
		}
	}
	return worst
}

func (v *Verdict[C]) add(p *Policy[C], l algo.Limiter, key string) {
	var part *Part[C]
	if v.more == nil {
		part = &v.room[v.count]
	} else {
		v.more = v.more[:v.count+1]
		part = &v.more[v.count]
	}
	part.Policy, part.Request.Limiter, part.Request.Key = p, l, key // one by one: without a bulk write barrier
	part.Request.N = 1
	v.count++
}

// Again returns a verdict with the keys of v, for another charge.
func (v *Verdict[C]) Again() Verdict[C] {
	again := *v
	again.more = slices.Clone(v.more)
	return again
}

// only makes v the verdict of p alone.
func (v *Verdict[C]) only(p *Policy[C], key string) {
	v.count, v.more, v.room[0] = 0, nil, Part[C]{}
	v.add(p, p.Limiter, key)
	v.room[0].Request.N = 0
}

// denied classifies a denial. It ignores a deadline that has passed, but not a
// client that has left.
func (v *Verdict[C]) denied(ctx context.Context) {
	if err := ctx.Err(); err != nil && errors.Is(err, context.Canceled) {
		v.Result, v.Err = telemetry.Canceled, err
		v.refuse(Gone)
		return
	}
	v.Result = telemetry.Denied
	v.refuse(blames[min(v.Decision().Reason, algo.Never)])
}

// refuse completes the verdict on a call that may not start. Its Wait is the Retry-After and
// Retry-After-Ms of httpmw/fields.go, and the RetryInfo of grpcmw/answer.go; the pushback of
// grpcmw/pushback.go is the Wait, or what it was before it was spread.
func (v *Verdict[C]) refuse(b Blame) {
	v.Blame = b
	v.Wait = Jitter(v.exact(), v.Decision().ResetAfter, rand.Float64())
}

// exact returns the wait before it is spread.
func (v *Verdict[C]) exact() time.Duration {
	switch {
	case v.Blame != Undecided:
		return waitFor(v.Decision())
	case errors.Is(v.Err, algo.ErrCost):
		return algo.Forever // the same call has the same cost again
	}
	return defaultWait
}

const (
	// defaultWait is the wait asked for where a limiter denies without one, and
	// after a failure.
	defaultWait = time.Second
	// maxJitter bounds the time added to a wait, next to a fifth of it.
	maxJitter = 5 * time.Second
	// maxRefill bounds the time added to a wait until the quota is back.
	maxRefill = time.Second
	// DoNotRetry is the pushback for no further attempt.
	DoNotRetry = -1
)

// waitFor returns the wait after the denial d: without one from the limiter
// defaultWait, so that clients do not return at once.
func waitFor(d *algo.Decision) time.Duration {
	switch {
	case d.Reason == algo.Never:
		return algo.Forever
	case d.RetryAfter <= 0:
		return defaultWait
	}
	return d.RetryAfter
}

// TimeLeft returns the time until the deadline of ctx; algo.Forever without one.
func TimeLeft(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return algo.Forever
}

// Jitter lengthens wait, so that clients with the same wait return spread out: by up
// to 20 %, at most 5 s, or up to the reset at which the whole quota is back, at most
// 1 s, whichever is more. Until the reset nothing of the quota is lost. It never
// shortens wait, because an earlier retry would be denied. random is in [0, 1).
func Jitter(wait, reset time.Duration, random float64) time.Duration {
	spread := max(min(wait/5, maxJitter), min(reset-wait, maxRefill))
	return wait + time.Duration(random*float64(min(spread, algo.Forever-wait)))
}

// Milliseconds rounds up, as Seconds does, so that no client returns too early.
func Milliseconds(d time.Duration) int64 { return in(time.Millisecond, d) }

// Seconds rounds up.
func Seconds(d time.Duration) int64 { return in(time.Second, d) }

func in(unit, d time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// Milliseconds returns the wait in milliseconds; 0 if retrying cannot succeed.
func (v *Verdict[C]) Milliseconds() int64 {
	if v.Wait == algo.Forever {
		return 0
	}
	return Milliseconds(v.Wait)
}

// Seconds returns the Milliseconds in seconds, rounded up.
func (v *Verdict[C]) Seconds() int64 { return (v.Milliseconds() + 999) / 1000 }

// Pushback returns grpc-retry-pushback-ms (gRFC A6) for a caller whose deadline is in left:
// the milliseconds, or -1 if the deadline comes first.
func (v *Verdict[C]) Pushback(left time.Duration) int32 {
	for _, wait := range [...]time.Duration{v.Wait, v.exact()} { // without jitter it may fit
		if ms := Milliseconds(wait); wait != algo.Forever && ms < int64(left/time.Millisecond) {
			return int32(min(ms, math.MaxInt32))
		}
	}
	return DoNotRetry
}
