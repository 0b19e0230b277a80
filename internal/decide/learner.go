package decide

import (
	"math"
	"time"
)

const (
	// growth is the time in which a rate that is used whole grows by a factor of e.
	growth = 3 * time.Second
	// gently is how long the growth takes to become that fast.
	gently = 5 * time.Second
	// firstGrowth is the same before the first denial.
	firstGrowth = time.Second
	// leastHold is the least time for which a rate is held after a denial. A search for
	// more costs a denial, so after long waits or many denials it takes longer: waits are
	// to cost at most 1/holdWaits of the time, denials at most 1/holdDenials of the calls.
	leastHold   = 10 * time.Second
	longestHold = time.Minute
	holdWaits   = 20
	holdDenials = 100
	// mostCut is the least part of a rate that is left after a denial: a wait may be longer than it had to be.
	mostCut = 0.8
	// longestBurst is how long a bucket of usual size lasts: a rate that was denied after t is
	// above the limit by at most longestBurst/t.
	longestBurst = time.Second
	// overshoot is how far above the limit a rising rate comes before a bucket is empty.
	overshoot = 1.4
	// firstOvershoot is the same before the first denial.
	firstOvershoot = 1.7
	// retry is the least factor between the rates before and after a search.
	retry = 1.02
	// margin is the part of an estimate that is used.
	margin = 0.99
	// memory is the least time over which what was accepted is counted, waits included;
	// it is longer, memoryWaits times the last wait, where waits are long.
	memory      = 5 * time.Second
	memoryWaits = 5
	// longestAlone is how long a call after a denial is alone if no answer comes.
	longestAlone = time.Second
	// slack is how late calls may be, because timers are, without loss of rate.
	slack = 20 * time.Millisecond
	// longestPause is the longest pause of our own, where the server asks for none.
	longestPause = time.Minute
	// leastRate is the least rate that is learned, in units a second.
	leastRate = 1. / 60
)

// Learner is what is known of one limit of a server. Times are since any origin.
//
// A denial says that the rate was too high. What it should have been follows from what the
// server has accepted in the last seconds, waits included; or if the rate was rising, from how far
// it had come. That rate is then held for a while, and rises again.
type Learner struct {
	rate  float64       // units a second
	next  time.Duration // when the next call may start
	open  time.Duration // before that the server wants nothing
	alone time.Duration // until then, or until its answer, the first call after a denial is alone
	hold  time.Duration // before that the rate does not rise
	since time.Duration // of the last denial that changed the rate; calls sent before say nothing

	accepted float64 // units in the memory
	took     float64 // the seconds that sending and waiting took
	wait     float64 // the last wait, in seconds
	held     float64 // the rate after the last denial

	denied int64 // units since the rate last rose
	row    int   // denials in a row

	told      float64       // the rate that the server states; 0: none
	distrusts time.Duration // until then the statement is an upper bound only
}

// NewLearner begins at a rate, in units a second.
func NewLearner(rate float64) Learner {
	return Learner{rate: rate, held: rate, accepted: 2, took: 2 / rate}
}

// Pace is the rate in force.
func (m *Learner) Pace(now time.Duration) float64 {
	switch {
	case m.told == 0:
		return m.rate
	case now < m.distrusts:
		return min(m.rate, m.told)
	}
	return m.told
}

// Told notes a rate that the server states.
func (m *Learner) Told(rate float64) { m.told = max(rate, leastRate) }

// Wait is how long the server still wants no call.
func (m *Learner) Wait(now time.Duration) time.Duration { return max(m.open-now, 0) }

// Ahead is how long a call has to wait; 0: it may start.
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

// Accepted is the answer to a call of n units that was accepted.
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

// growth is by how much of itself a rate grows in a second. After a hold it begins gently, so
// that it does not come far above the limit before that is found.
func (m *Learner) growth(now time.Duration) float64 {
	if m.since == 0 {
		return 1 / firstGrowth.Seconds()
	}
	return min(1, float64(now-m.hold)/float64(gently)) / growth.Seconds()
}

// Denied is the answer to a call of n units that was denied; wait is what the server
// asked for, or 0.
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

// Closed notes that the server wants no call for a while.
func (m *Learner) Closed(now, wait time.Duration) {
	if until := now + wait; until > m.open && wait > 0 {
		m.remember(0, (until - max(now, m.open)).Seconds())
		m.wait = wait.Seconds()
		m.open = until
		m.next = max(m.next, until)
	}
}

// learn sets the rate after a denial at the given one, which was in use for lasted.
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
