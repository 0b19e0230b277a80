package decide

import (
	"math"
	"time"
)

const (
	// growth is the time in which a fully used rate grows by a factor of e.
	growth = 3 * time.Second
	// gently is how long the growth takes to become that fast.
	gently = 5 * time.Second
	// firstGrowth is growth before the first denial.
	firstGrowth = time.Second
	// leastHold is the least time for which a rate stays after a denial. A search for more costs a
	// denial, so the hold grows with long waits and many denials: waits may cost 1/holdWaits of the
	// time, denials 1/holdDenials of the calls.
	leastHold   = 10 * time.Second
	longestHold = time.Minute
	holdWaits   = 20
	holdDenials = 100
	// mostCut is the least part of a rate left after a denial, because a wait may be too long.
	mostCut = 0.8
	// longestBurst is how long a usual bucket lasts: a rate that was denied after t exceeds the limit
	// by at most longestBurst/t.
	longestBurst = time.Second
	// overshoot is how far above the limit a rising rate comes before a bucket is empty.
	overshoot = 1.4
	// firstOvershoot is overshoot before the first denial.
	firstOvershoot = 1.7
	// retry is the least factor between the rates before and after a search.
	retry = 1.02
	// margin is the part of an estimate that is used.
	margin = 0.99
	// memory is the least span over which accepted units count, waits included; after a long wait it
	// is memoryWaits times as long.
	memory      = 5 * time.Second
	memoryWaits = 5
	// longestAlone is how long a call after a denial is alone if no answer comes.
	longestAlone = time.Second
	// slack is how late calls may be without loss of rate, because timers are late.
	slack = 20 * time.Millisecond
	// longestPause is the longest pause if the server asks for none.
	longestPause = time.Minute
	// leastRate is the lowest learned rate, in units a second.
	leastRate = 1. / 60
)

// Learner learns one limit of a server. Times are since any origin.
//
// A denial shows that the rate was too high. The right rate follows from what the server has
// accepted in the last seconds, waits included, or, if the rate was rising, from its overshoot. The
// learner holds that rate for a while, then raises it again.
type Learner struct {
	rate  float64       // units a second
	next  time.Duration // when the next call may start
	open  time.Duration // when the server accepts calls again
	alone time.Duration // until then, or its answer, the first call after a denial is alone
	hold  time.Duration // until then the rate does not rise
	since time.Duration // last denial that changed the rate; calls sent before do not count

	accepted float64 // units in the memory
	took     float64 // the seconds that sending and waiting took
	wait     float64 // the last wait, in seconds
	held     float64 // the rate after the last denial

	denied int64 // units since the rate last rose
	row    int   // denials in a row

	told      float64       // the stated rate; 0: none
	distrusts time.Duration // until then the stated rate is only an upper bound
}

// NewLearner makes a learner that begins at rate, in units a second.
func NewLearner(rate float64) Learner {
	return Learner{rate: rate, held: rate, accepted: 2, took: 2 / rate}
}

// Pace returns the rate in force.
func (m *Learner) Pace(now time.Duration) float64 {
	switch {
	case m.told == 0:
		return m.rate
	case now < m.distrusts:
		return min(m.rate, m.told)
	}
	return m.told
}

// Told records the rate that the server states.
func (m *Learner) Told(rate float64) { m.told = max(rate, leastRate) }

// Wait returns how long the server still wants no call.
func (m *Learner) Wait(now time.Duration) time.Duration { return max(m.open-now, 0) }

// Ahead returns how long a call must wait; 0: it may start.
func (m *Learner) Ahead(now time.Duration) time.Duration {
	at := max(m.open, m.next, now-slack)
	switch {
	case at > now:
		return at - now
	case m.alone > now:
		return min(m.alone-now, slack)
	}
	return 0
}

// Start starts a call of n units.
func (m *Learner) Start(now time.Duration, n int64) {
	m.next = max(m.open, m.next, now-slack)
	m.Correct(now, n)
	if m.row > 0 {
		m.alone = now + longestAlone
	}
}

// Correct adds n units to the calls that have started.
func (m *Learner) Correct(now time.Duration, n int64) {
	m.next += seconds(float64(n) / m.Pace(now))
}

// remember adds units and time to the memory.
func (m *Learner) remember(units, took float64) {
	left := math.Exp(-took / max(memory.Seconds(), memoryWaits*m.wait))
	m.accepted = m.accepted*left + units
	m.took = m.took*left + took
}

// Accepted learns from an accepted call of n units.
func (m *Learner) Accepted(now, sent time.Duration, n int64) {
	rate, units := m.Pace(now), float64(n)
	took := units / rate
	m.remember(units, took)
	if m.alone > 0 {
		m.remember(0, (now - sent).Seconds())
	}
	m.row, m.alone = 0, 0
	if sent < m.since {
		return
	}
	switch {
	case m.told > 0 && now >= m.distrusts:
		m.rate = m.told
	case now >= m.hold && m.next >= now-2*slack: // the rate is used
		m.rate += min(units*m.growth(now), m.rate)
	}
}

// growth returns the part by which a rate grows in a second. After a hold it begins gently, to find
// the limit before it is far exceeded.
func (m *Learner) growth(now time.Duration) float64 {
	if m.since == 0 {
		return 1 / firstGrowth.Seconds()
	}
	return min(1, float64(now-m.hold)/float64(gently)) / growth.Seconds()
}

// Denied learns from a denied call of n units; wait is the wait that the server asked for, or 0.
func (m *Learner) Denied(now, sent time.Duration, n int64, wait time.Duration) {
	rate, lasted := m.Pace(now), max(now-max(m.since, m.open), 0)
	held := m.since > 0 && now < m.hold
	if sent >= m.since && !held {
		m.denied = 0
	}
	m.denied += n
	m.remember(0, float64(n)/rate)
	m.alone = 0
	if sent >= m.open { // it was not sent while the server was known to be closed
		wait = max(wait, min(seconds(math.Ldexp(1/rate, m.row)), longestPause))
		m.row++
	}
	m.Closed(now, wait)
	if sent >= m.since {
		m.learn(now, lasted, held, rate)
	}
	costs := seconds(max(holdWaits*m.wait, holdDenials*float64(m.denied)/m.rate))
	m.hold = m.open + min(max(leastHold, costs), longestHold)
}

// Closed records that the server wants no call for wait.
func (m *Learner) Closed(now, wait time.Duration) {
	if until := now + wait; until > m.open && wait > 0 {
		m.remember(0, (until - max(now, m.open)).Seconds())
		m.wait = wait.Seconds()
		m.open = until
		m.next = max(m.next, until)
	}
}

// learn sets the rate after a denial at rate, which was in use for lasted.
func (m *Learner) learn(now, lasted time.Duration, held bool, rate float64) {
	estimate := max(m.accepted/m.took, rate*mostCut, rate*(1-longestBurst.Seconds()/lasted.Seconds()))
	if !held && m.told == 0 {
		above := overshoot
		if m.since == 0 {
			above = firstOvershoot
		}
		estimate = max(m.held*retry, rate/above)
		m.took = memory.Seconds()
		m.accepted = estimate * m.took
	}
	m.rate = max(margin*min(estimate, rate), leastRate)
	m.held = m.rate
	m.since = now
	if m.told > 0 {
		m.distrusts = now + leastHold
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/4))
}
