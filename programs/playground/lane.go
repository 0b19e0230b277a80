package main

import (
	"context"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

// lane is one algorithm under the traffic.
type lane struct {
	algorithm
	limiter  algo.Limiter
	asked    algo.Limiter // limiter, behind the actions of the admin page
	observe  telemetry.Observer
	strip    strip
	totals   totals
	inFlight int
	limited  map[int]bool // the users that were denied something
}

// totals are the counts of a lane since the settings were changed. Asked is
// the sum of AtOnce, Delayed, Denied and Failed.
type totals struct {
	Asked    int `json:"asked"`
	AtOnce   int `json:"atOnce"`
	Delayed  int `json:"delayed"`
	Denied   int `json:"denied"`
	Failed   int `json:"failed"` // the limiter returned an error
	Retries  int `json:"retries"`
	InFlight int `json:"inFlight"` // the maximum, including requests that wait
	Users    int `json:"users"`    // that were denied something
	Tenth    int `json:"tenth"`    // most starts in 100 ms
	Second   int `json:"second"`   // most starts in 1 s
}

func (l *lane) restart() {
	l.totals = totals{InFlight: l.inFlight}
	l.limited = map[int]bool{}
	l.strip.starts.restart()
}

func (l *lane) count() totals {
	t := l.totals
	t.Users, t.Tenth, t.Second = len(l.limited), l.strip.starts.Tenth, l.strip.starts.Second
	return t
}

// attempt is a request on its way through one lane.
type attempt struct {
	lane  *lane
	user  int
	work  time.Duration
	tries int // left
	lease *algo.Lease
}

// ask passes a to its limiter at the time now, and queues the next events.
func (a *attempt) ask(now time.Duration, key user, q *queue) {
	l := a.lane
	l.totals.Asked++
	lease, err := l.asked.Acquire(context.Background(), key.name, 1)
	l.report(&lease.Decision, key, err)
	switch {
	case err != nil:
		l.totals.Failed++
	case !lease.Allowed:
		a.denied(now, q)
	default:
		a.lease = &lease
		l.inFlight++
		l.totals.InFlight = max(l.totals.InFlight, l.inFlight)
		if lease.Delay > 0 {
			l.totals.Delayed++
			q.push(event{now + lease.Delay, begins, a})
			return
		}
		l.totals.AtOnce++
		a.begin(now, q, false)
	}
}

// report passes the decision on, as httpmw does.
func (l *lane) report(d *algo.Decision, key user, err error) {
	e := telemetry.Event{
		At: time.Now(), Policy: l.Name, Decision: *d, Cost: 1, KeyHash: key.hash, Err: err,
	}
	switch {
	case err != nil:
		e.Result, e.Status = telemetry.FailedClosed, http.StatusServiceUnavailable
	case !d.Allowed:
		e.Result, e.Status = telemetry.Denied, http.StatusTooManyRequests
	}
	l.observe(e)
}

// denied retries as often as its load prescribes and ignores Retry-After: this
// makes a storm.
func (a *attempt) denied(now time.Duration, q *queue) {
	l := a.lane
	l.totals.Denied++
	l.limited[a.user] = true
	l.strip.at().denied++
	if a.tries > 0 {
		a.tries--
		q.push(event{now + backOff, retries, a})
	}
}

func (a *attempt) begin(now time.Duration, q *queue, waited bool) {
	a.lane.strip.begin(waited)
	q.push(event{now + a.work, ends, a})
}

func (a *attempt) end() {
	a.lane.inFlight--
	a.lease.Release(algo.Succeeded)
}
