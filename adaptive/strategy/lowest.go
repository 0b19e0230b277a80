package strategy

import (
	"math"
	"sync/atomic"

	"github.com/sluice-go/sluice/adaptive"
)

// lowestSamples is the number of successes whose mean is a response time.
const lowestSamples = 20

// lowest averages the response time of work that begins while the limit is at its lowest.
type lowest struct {
	since  atomic.Int64 // instant since which the limit is lowest; MaxInt64: it is not
	limit  atomic.Int64 // the lowest limit; with more in flight it drains
	n, sum atomic.Int64
	mean   int64 // 0: unknown; the strategy guards it
}

// add counts a success.
func (l *lowest) add(at int64, s adaptive.Sample) {
	if at-int64(s.RTT) >= l.since.Load() && int64(s.InFlight) <= l.limit.Load() {
		l.n.Add(1)
		l.sum.Add(int64(s.RTT))
	}
}

// turn takes the new limit; is tells whether it is the lowest.
func (l *lowest) turn(at, limit int64, is bool) {
	begun := l.since.Load()
	switch {
	case !is:
		l.since.Store(math.MaxInt64)
	case begun == math.MaxInt64:
		l.limit.Store(limit)
		l.n.Store(0)
		l.sum.Store(0)
		l.since.Store(at)
	case l.n.Load() >= lowestSamples:
		if mean := l.sum.Load() / l.n.Load(); at-begun >= 2*mean { // otherwise only fast work has ended
			l.mean = mean
		}
	}
}

// begin starts an overload. A known baseline makes the mean unnecessary.
func (l *lowest) begin(baseline bool) {
	l.since.Store(math.MaxInt64)
	if baseline {
		l.mean = 0
	}
}
