package admin

import (
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/distributed"
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
	p := s.policy.Load()
	if k == denied && p.isBlocked(&e) {
		k = blocked
	}
	s.add(now, k, e.Decision.Source)
	if e.Decision.Source == algo.SourceRemote {
		s.addWait(now, e.Waited)
	}
	if (k == denied || k == shadowed) && e.KeyHash != 0 && e.KeyHash != everybody {
		most := &a.top
		if k == shadowed {
			most = &a.trials
		}
		most.note(limited{s, e.KeyHash}, now)
		p.want(e.KeyHash)
	}
	if a.recent.note(&e, k, e.At.Sub(a.start)) {
		p.want(e.KeyHash)
	}
	if a.gauged.Load() != now {
		a.sample(now)
	}
}

// kind is the category in which the page counts a decision.
type kind uint8

const (
	admitted kind = iota // at once
	queued               // after a wait
	shadowed             // let through by a limit on trial that would not have
	denied
	blocked // denied because an operator blocked the key
	failed  // not decided, or the client went away before it was
	kinds
)

var kindNames = [kinds]string{"admitted", "queued", "shadowed", "denied", "blocked", "failed"}

// queuedFrom is the wait in this process from which on an admission counts as
// queued: a limiter without a queue answers sooner.
const queuedFrom = time.Millisecond

func kindOf(e *telemetry.Event) kind {
	switch {
	case e.Result == telemetry.Denied:
		return denied
	case e.Result != telemetry.Allowed:
		return failed
	case e.Decision.Trial != algo.Admitted:
		return shadowed
	case e.Decision.Delay > 0, e.Waited >= queuedFrom && e.Decision.Source == algo.SourceLocal:
		return queued
	}
	return admitted
}

// isBlocked reports whether an operator's block denied a request. p may be nil.
func (p *policy) isBlocked(e *telemetry.Event) bool {
	if p == nil {
		return false
	}
	b := p.blocks.findHash(e.KeyHash, e.At)
	return b != nil && b.explains(e.At, &e.Decision)
}

// want asks for the key of a hash that is shown. p may be nil.
func (p *policy) want(hash uint64) {
	if p != nil && p.callers != nil && hash != 0 {
		p.callers.want(hash)
	}
}

// IsBlocked reports whether an operator's block denied the request of an event, so that
// logs can say so: the reason of such a denial is quota.
func (a *Admin) IsBlocked(e *telemetry.Event) bool {
	return e.Result == telemetry.Denied && a.config.Load().policy(e.Policy).isBlocked(e)
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
		state := s.store.Stats().Phase
		s.gauge.set(now, int(state), 0)
		s.outage.note(state != distributed.PhaseClosed)
	}
}
