package admin

import (
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

// Observe counts one decision. It is a telemetry.Observer, for WithObserver of
// httpmw and grpcmw, alone or beside others with telemetry.Tee. It does not
// wait for anything but a short lock, and allocates nothing, but for the first
// event of a policy and for the few decisions a second that are kept with an
// error.
func (a *Admin) Observe(e telemetry.Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	now := a.second(e.At)
	k := kindOf(&e)
	s := a.book.find(e.Policy, now)
	s.add(now, k, e.Decision.Source)
	if (k == denied || k == shadowed) && e.KeyHash != 0 && e.KeyHash != everybody {
		a.top.note(limited{s, e.KeyHash}, now)
	}
	a.recent.note(&e, k, e.At.Sub(a.start))
	if a.gauged.Load() != now {
		a.sample(now)
	}
}

// kind is what the page counts a decision as.
type kind uint8

const (
	admitted kind = iota // at once
	queued               // after a wait
	shadowed             // let through by a limit on trial that would not have
	denied
	failed // not decided, or the client went away before it was
	kinds
)

var kindNames = [kinds]string{"admitted", "queued", "shadowed", "denied", "failed"}

// queuedFrom is the wait in this process from which on an admission counts as
// queued: a limiter without a queue answers sooner.
const queuedFrom = time.Millisecond

func kindOf(e *telemetry.Event) kind {
	switch {
	case e.Result == telemetry.Denied:
		return denied
	case e.Result != telemetry.Allowed:
		return failed
	case e.Shadowed():
		return shadowed
	case e.Decision.Delay > 0, e.Waited >= queuedFrom && e.Decision.Source == algo.SourceLocal:
		return queued
	}
	return admitted
}

// sample notes the state of limiters and stores, once a second: the first caller
// does it. Without traffic no caller does, and nothing changes.
func (a *Admin) sample(now uint32) {
	if was := a.gauged.Load(); was >= now || !a.gauged.CompareAndSwap(was, now) {
		return
	}
	c := a.config.Load()
	for _, l := range c.adaptive {
		l.gauge.set(now, l.limiter.InFlight(), l.limiter.Limit())
	}
	for _, s := range c.stores {
		s.gauge.set(now, int(s.store.Stats().State), 0)
	}
}
