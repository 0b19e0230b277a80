package algo

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/warning"
)

// Switch turns a limiter on and off at run time; see [NewSwitch].
type Switch struct {
	wrapping
	end   atomic.Int64           // of the time in which it is off, in Unix nanoseconds; 0: it is on
	name  atomic.Pointer[string] // in warnings; nil: the limit's own
	pause warning.Pause
}

// NewSwitch wraps l with a switch, initially on. [Switch.Off] lifts the limit
// at once.
//
// While it is off, requests are admitted and not charged. The first of them, and one an hour, is
// logged with the code algo.switched_off. Requests that were
// admitted before are released as usual. [About] and [Spec.Apply] go
// to l, whether the switch is on or off. It panics if l is nil.
func NewSwitch(l Limiter) *Switch {
	mustLimiter(l, "NewSwitch")
	return &Switch{wrapping: wrapping{l}}
}

// On lets the limiter decide.
func (s *Switch) On() {
	s.end.Store(0)
	s.pause.Reset()
}

// Off admits every request, with [SourceOff], and bypasses the limiter.
func (s *Switch) Off() { s.end.Store(math.MaxInt64) }

// OffUntil is Off until t, a time before the year 2262. From then on the limiter decides.
func (s *Switch) OffUntil(t time.Time) {
	s.pause.Reset() // the time before may have ended by itself
	s.end.Store(t.UnixNano())
}

// IsOn reports whether the limiter decides.
func (s *Switch) IsOn() bool {
	end := s.end.Load()
	return end == 0 || end != math.MaxInt64 && time.Now().UnixNano() >= end
}

// Choose returns the limiter that decides now.
func (s *Switch) Choose(context.Context, string) (Limiter, error) { return s.current(), nil }

func (s *Switch) current() Limiter {
	if s.IsOn() {
		return s.limiter
	}
	if s.pause.Over(time.Hour) {
		name := About(s.limiter).String()
		if given := s.name.Load(); given != nil {
			name = *given
		}
		warnOff.Print("limit", name)
	}
	return unlimited{}
}

func (s *Switch) setName(name string) { s.name.Store(&name) }

var warnOff = warning.Line{
	Code:    "algo.switched_off",
	Message: "algo: a limit is switched off and denies nothing",
	Do:      "switch it on, unless that is intended",
}

// About is about the limiter, with Off while the switch is off.
func (s *Switch) About() Description {
	d := About(s.limiter)
	d.Off = d.Off || !s.IsOn()
	return d
}

// Acquire forwards to the limiter while the switch is on, and admits the
// request while it is off.
func (s *Switch) Acquire(ctx context.Context, key string, n int64) (Lease, error) {
	return s.current().Acquire(ctx, key, n)
}

// Unlimited admits every request, with [SourceOff].
func Unlimited() Limiter { return unlimited{} }

type unlimited struct{}

// Acquire admits the request.
func (unlimited) Acquire(_ context.Context, _ string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	lease.Decision = notLimited
	return lease, nil
}

var notLimited = Decision{Allowed: true, Source: SourceOff}

// Peek admits too.
func (unlimited) Peek(_ context.Context, _ string, n int64) (Decision, error) {
	if n < 0 {
		return Decision{}, costError(n)
	}
	return notLimited, nil
}

// About says that nothing is denied.
func (unlimited) About() Description { return Description{Off: true} }

// DenyAll denies every request, at any cost and for a peek too, with the Reason
// [Banned], for ever, and a Limit of 0: a plan that allows nothing, or a method that is closed.
func DenyAll() Limiter { return denyAll{} }

// denyAll denies every request forever.
type denyAll struct{}

// Acquire denies the request.
func (denyAll) Acquire(_ context.Context, _ string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	lease.Decision = deniedForEver
	return lease, nil
}

var deniedForEver = Decision{Reason: Banned, RetryAfter: Forever, NextAfter: Forever, ResetAfter: Forever}

// Peek denies too.
func (denyAll) Peek(_ context.Context, _ string, n int64) (Decision, error) {
	if n < 0 {
		return Decision{}, costError(n)
	}
	return deniedForEver, nil
}

// About states no quota.
func (denyAll) About() Description { return Description{} }
