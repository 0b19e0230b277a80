package adaptive

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	baselineCut   = 10.0                     // baselines: the most that one response counts
	baselineFloor = 10e6                     // ns: a shorter baseline counts as this where times are compared
	baselineBatch = 100                      // successes that make a baseline
	baselineDown  = float64(2 * time.Second) // memory of the baseline when it gets shorter, ns
	baselineUp    = float64(time.Minute)     // and when it gets longer
	recentSpan    = float64(100e6)           // memory of the recent time, ns
	recentCount   = 20.0                     // and in responses, if those take longer to come
	recentStale   = float64(time.Second)     // without a response, after which there is no recent time
)

// baseline knows the normal response time of successes, and the recent one.
//
// Both are means of response times that are cut at ten baselines, or 90 ms above
// the baseline if that is more. Uncut, a few long responses among many short ones,
// such as the misses of a cache, would make the recent time random. Where a tenth
// of the responses or more are that long the baseline rises until none is cut.
type baseline struct {
	cut   atomic.Int64 // longer times count as this, ns; 0: no cut
	since atomic.Int64 // fresh has the work that began since; MaxInt64: none
	_     [64]byte     // every success writes the fields below
	took  durations    // since the last update
	fresh durations

	// The caller of update guards the fields below.
	recent float64 // ns
	normal float64 // ns, 0: unknown
	mean   float64 // of the uncut times, ns
	silent float64 // time since the last completion, ns
	batch  struct{ n, cut, whole, dt float64 }
}

// durations are sums of response times, uncut and cut.
type durations struct{ n, cut, whole atomic.Int64 }

func (d *durations) add(rtt, cut int64) {
	d.n.Add(1)
	d.whole.Add(rtt)
	if cut > 0 {
		rtt = min(rtt, cut)
	}
	d.cut.Add(rtt)
}

func (d *durations) take() (n, cut, whole float64) {
	return float64(d.n.Swap(0)), float64(d.cut.Swap(0)), float64(d.whole.Swap(0))
}

// observe takes in a success.
func (b *baseline) observe(end, rtt int64) {
	cut := b.cut.Load()
	b.took.add(rtt, cut)
	if end-rtt >= b.since.Load() {
		b.fresh.add(rtt, cut)
	}
}

// update takes in the successes of the last dt nanoseconds, and reports whether
// there were any. The baseline moves only while it is calm.
func (b *baseline) update(dt float64, calm bool) bool {
	n, cut, whole := b.took.take()
	b.silent += dt
	if n == 0 {
		return false
	}
	if b.recent == 0 || b.silent > recentStale {
		b.recent = b.normal
	}
	if b.recent == 0 {
		b.recent = cut / n
	}
	b.recent += min(1-math.Exp(-b.silent/recentSpan), 1-math.Exp(-n/recentCount)) * (cut/n - b.recent)
	s := &b.batch
	s.n, s.cut, s.whole, s.dt = s.n+n, s.cut+cut, s.whole+whole, s.dt+b.silent
	b.silent = 0
	if !calm {
		s.n, s.cut, s.whole, s.dt = 0, 0, 0, 0
	}
	if s.n >= baselineBatch {
		b.move(s.cut/s.n, s.whole/s.n, s.dt)
		s.n, s.cut, s.whole, s.dt = 0, 0, 0, 0
	}
	return true
}

// move takes in the means of a batch that took dt nanoseconds.
func (b *baseline) move(cut, whole, dt float64) {
	if b.normal == 0 {
		b.set(cut, whole)
		return
	}
	memory := baselineUp
	if cut < b.normal {
		memory = baselineDown
	}
	b.set(b.normal+(1-math.Exp(-dt/memory))*(cut-b.normal), b.mean+(1-math.Exp(-dt/baselineUp))*(whole-b.mean))
}

func (b *baseline) set(normal, mean float64) {
	b.normal, b.mean = normal, mean
	b.cut.Store(int64(b.times(baselineCut)))
}

// times is x baselines, where a baseline below 10 ms counts as 10 ms: a handler of
// 100 us that takes 400 us is not slow, it was interrupted.
func (b *baseline) times(x float64) float64 { return b.normal + (x-1)*max(b.normal, baselineFloor) }

// restart limits fresh to the work that begins from now on.
func (b *baseline) restart(since int64) {
	b.since.Store(since)
	b.fresh.take()
}

// raise makes the mean time of fresh work the baseline if it exceeds x baselines.
func (b *baseline) raise(x float64) {
	if n, cut, whole := b.fresh.take(); n > 0 && cut/n > b.times(x) {
		b.set(whole/n, whole/n)
	}
}
