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
	end   atomic.Int64           // end of the off time, in Unix nanoseconds; 0: on
	name  atomic.Pointer[string] // in warnings; nil: the limit's own
	pause warning.Pause
}

// NewSwitch wraps l with a switch, initially on. [Switch.Off] lifts the limit at once.
//
// While off, it admits requests without a charge. It logs the first, and one an hour, with the code
// algo.switched_off. Earlier admissions are released as usual. [About] and [Spec.Apply] reach l
// whether the switch is on or off. NewSwitch panics if l is nil.
func NewSwitch(l Limiter) *Switch {
	mustLimiter(l, "NewSwitch")
	return &Switch{wrapping: wrapping{l}}
}

// On lets the limiter decide.
func (s *Switch) On() {
	s.end.Store(0)
	s.pause.Reset()
}

// Off admits every request without the limiter, with [SourceOff].
func (s *Switch) Off() { s.end.Store(math.MaxInt64) }

// OffUntil is Off until t, a time before the year 2262; then the limiter decides again.
func (s *Switch) OffUntil(t time.Time) {
	s.pause.Reset() // the previous off time may have ended by itself
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

// About describes the limiter, with Off while the switch is off.
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

// Unlimited returns a limiter that admits every request, with [SourceOff].
func Unlimited() Limiter { return unlimited{} }

type unlimited struct{}

func (unlimited) Acquire(_ context.Context, _ string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	lease.Decision = notLimited
	return lease, nil
}

var notLimited = Decision{Allowed: true, Source: SourceOff}

func (unlimited) Peek(_ context.Context, _ string, n int64) (Decision, error) {
	if n < 0 {
		return Decision{}, costError(n)
	}
	return notLimited, nil
}

func (unlimited) About() Description { return Description{Off: true} }

// DenyAll returns a limiter that denies every request and peek for ever, with the Reason [Banned]
// and a Limit of 0, for a plan that allows nothing or a closed method.
func DenyAll() Limiter { return denyAll{} }

type denyAll struct{}

func (denyAll) Acquire(_ context.Context, _ string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	lease.Decision = deniedForEver
	return lease, nil
}

var deniedForEver = Decision{Reason: Banned, RetryAfter: Forever, NextAfter: Forever, ResetAfter: Forever}

func (denyAll) Peek(_ context.Context, _ string, n int64) (Decision, error) {
	if n < 0 {
		return Decision{}, costError(n)
	}
	return deniedForEver, nil
}

func (denyAll) About() Description { return Description{} }
