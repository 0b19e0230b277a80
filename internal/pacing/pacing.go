// Package pacing makes the calls of a client wait for a limit, and for the servers that ask for
// it. It is what httpmw/client and grpcmw/client share.
package pacing

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/serverwait"
	"github.com/sluice-go/sluice/keyfunc"
)

// Pacer is one limit with the settings that both clients have.
type Pacer struct {
	Limiter  algo.Limiter
	Name     string
	FailOpen bool // calls whose key or limiter fails are sent
	Observe  func(telemetry.Event)
	Waits    *serverwait.Waits
	learners []learn.Learner
	chooses  bool // which of the learners learns depends on the call
}

// New makes a Pacer with the name that describes the limit.
func New(l algo.Limiter) Pacer {
	p := Pacer{Limiter: l, Name: algo.About(l).String(), Waits: serverwait.New(serverwait.Places), learners: learn.In(l)}
	for inner := range algo.Walk(l) {
		_, chooses := inner.(algo.Chooser)
		p.chooses = p.chooses || chooses
	}
	return p
}

// Learns reports whether an answer teaches a limit.
func (p *Pacer) Learns() bool { return len(p.learners) > 0 }

// Call is a call that may be sent.
type Call struct {
	Place serverwait.Place
	units int64
	sent  time.Time
}

// Admit waits until the call of e may be sent, and reports e. Its Cost is set, and its Err if
// the key or the cost could not be found. refused makes the error of a call that may not be sent.
// The lease of a call that passes unlimited stays zero.
func (p *Pacer) Admit(e telemetry.Event, place serverwait.Place, lease *algo.Lease, refused func(telemetry.Event) (status int, err error)) (c Call, err error) {
	start := time.Now()
	if e.Err == nil {
		e.Err = p.acquire(e.Context, place, e.Cost, lease)
	}
	if e.Result = p.classify(e.Context, e.Err); e.Result == telemetry.FailedOpen {
		if waited := p.Waits.Await(e.Context, place, algo.Sleep); waited != nil {
			e.Err, e.Result = waited, p.classify(e.Context, waited)
		}
	}
	e.Policy, e.Client, e.Decision = p.Name, true, lease.Decision
	if e.Result != telemetry.Allowed && e.Result != telemetry.FailedOpen {
		e.Status, err = refused(e)
	}
	e.At = time.Now()
	if p.Observe != nil {
		e.Waited, e.KeyHash = e.At.Sub(start), keyfunc.Hash(place.Key)
		for _, l := range p.chosen(e.Context, place.Key) {
			e.Rate = l.Stats(place.Key).Rate
		}
		p.Observe(e)
	}
	return Call{place, e.Cost, e.At}, err
}

// acquire waits until the server accepts the call and the limiter admits it. A server that asks
// to wait meanwhile makes the admission void: calls that kept theirs would start together.
func (p *Pacer) acquire(ctx context.Context, place serverwait.Place, n int64, lease *algo.Lease) error {
	for {
		err := p.Waits.Await(ctx, place, algo.Sleep)
		if err != nil {
			lease.Decision = algo.Decision{Reason: algo.Quota, RetryAfter: p.Waits.Left(place)}
			return err
		}
		if *lease, err = algo.Wait(ctx, p.Limiter, place.Key, n); err != nil || p.Waits.Left(place) <= 0 {
			return err
		}
		lease.Release(algo.Canceled)
	}
}

// classify is the fate of a call with that error.
func (p *Pacer) classify(ctx context.Context, err error) telemetry.Result {
	switch {
	case err == nil:
		return telemetry.Allowed
	case errors.Is(ctx.Err(), context.Canceled):
		return telemetry.Canceled
	case ctx.Err() != nil || errors.Is(err, algo.ErrWait) || errors.Is(err, algo.ErrCost):
		return telemetry.Denied
	case p.FailOpen:
		return telemetry.FailedOpen
	}
	return telemetry.FailedClosed
}

// Answered remembers the wait that the answer to c asks for, and teaches the limiter.
func (p *Pacer) Answered(ctx context.Context, c Call, a learn.Answer) {
	p.Waits.Update(c.Place, a.Wait)
	a.Sent, a.Units = c.sent, c.units
	for _, l := range p.chosen(ctx, c.Place.Key) {
		l.Answered(c.Place.Key, a)
	}
}

// chosen are the learners that the calls of a key teach.
func (p *Pacer) chosen(ctx context.Context, key string) []learn.Learner {
	if !p.chooses {
		return p.learners
	}
	l, err := algo.Resolve(ctx, p.Limiter, key)
	if err != nil {
		return nil
	}
	return learn.In(l)
}
