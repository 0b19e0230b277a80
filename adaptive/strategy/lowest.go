package strategy

import (
	"math"
	"sync/atomic"

	"github.com/sluice-go/sluice/adaptive"
)

// lowestSamples is the number of pieces of work whose mean is a response time.
const lowestSamples = 20

// lowest is the mean response time of work that begins while the limit is as low as it gets.
type lowest struct {
	since  atomic.Int64 // instant since which it is; MaxInt64: it is not
	limit  atomic.Int64 // that one; with more in flight it drains
	n, sum atomic.Int64
	mean   int64 // 0: unknown; the strategy guards it
}

// add takes in a success.
func (l *lowest) add(at int64, s adaptive.Sample) {
	if at-int64(s.RTT) >= l.since.Load() && int64(s.InFlight) <= l.limit.Load() {
		l.n.Add(1)
		l.sum.Add(int64(s.RTT))
	}
}

// turn takes in the limit from now on, and whether that is the lowest.
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
		if mean := l.sum.Load() / l.n.Load(); at-begun >= 2*mean { // or only fast work has ended
			l.mean = mean
		}
	}
}

// begin begins an overload. The mean is not needed if there is a baseline from before it.
func (l *lowest) begin(baseline bool) {
	l.since.Store(math.MaxInt64)
	if baseline {
		l.mean = 0
	}
}
