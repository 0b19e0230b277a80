package adaptive

import (
	"math"
	"sync/atomic"
	"time"
)

const (
	usualCut     = 10.0                     // times the usual time: what one response counts at most
	usualLeast   = 10e6                     // ns: what is shorter counts as much where times are compared
	usualSamples = 100                      // that make a usual time
	usualDown    = float64(2 * time.Second) // memory of the usual time, ns, when it gets shorter
	usualUp      = float64(time.Minute)     // and when it gets longer
	recentSpan   = float64(100e6)           // memory of the recent time, ns
	recentCount  = 20.0                     // and in responses, if those take longer to come
	recentStale  = float64(time.Second)     // without a response, after which there is no recent time
)

// usually knows how long successes usually take, and how long recent ones took.
//
// Both are means of times that are cut at ten times the usual one, or 90 ms above
// it if that is more. Otherwise a few long ones among many short ones, such as the
// misses of a cache, would make the recent time a matter of chance. While a
// tenth or more are that long, nothing is cut in the end: the usual time rises
// until it is not.
type usually struct {
	cut   atomic.Int64 // what longer times count as, ns; 0: nothing is cut
	since atomic.Int64 // fresh has what began since; never during MaxInt64
	took  spans        // since the last learn
	fresh spans

	// What follows is guarded by whoever learns.
	recent float64 // ns
	usual  float64 // ns, 0: unknown
	whole  float64 // mean of the times as they are, ns
	silent float64 // how long nothing has completed, ns
	batch  struct{ n, cut, whole, dt float64 }
}

// spans are sums of times, as they are and cut.
type spans struct{ n, cut, whole atomic.Int64 }

func (s *spans) add(rtt, cut int64) {
	s.n.Add(1)
	s.whole.Add(rtt)
	if cut > 0 {
		rtt = min(rtt, cut)
	}
	s.cut.Add(rtt)
}

func (s *spans) take() (n, cut, whole float64) {
	return float64(s.n.Swap(0)), float64(s.cut.Swap(0)), float64(s.whole.Swap(0))
}

// observe takes in a success.
func (u *usually) observe(end, rtt int64) {
	cut := u.cut.Load()
	u.took.add(rtt, cut)
	if end-rtt >= u.since.Load() {
		u.fresh.add(rtt, cut)
	}
}

// learn takes in what completed in the last dt nanoseconds, and reports whether
// anything did. The usual time is left as it is unless it is calm.
func (u *usually) learn(dt float64, calm bool) bool {
	n, cut, whole := u.took.take()
	u.silent += dt
	if n == 0 {
		return false
	}
	if u.recent == 0 || u.silent > recentStale {
		u.recent = u.usual
	}
	if u.recent == 0 {
		u.recent = cut / n
	}
	u.recent += min(1-math.Exp(-u.silent/recentSpan), 1-math.Exp(-n/recentCount)) * (cut/n - u.recent)
	b := &u.batch
	b.n, b.cut, b.whole, b.dt = b.n+n, b.cut+cut, b.whole+whole, b.dt+u.silent
	u.silent = 0
	if !calm {
		b.n, b.cut, b.whole, b.dt = 0, 0, 0, 0
	}
	if b.n >= usualSamples {
		u.grow(b.cut/b.n, b.whole/b.n, b.dt)
		b.n, b.cut, b.whole, b.dt = 0, 0, 0, 0
	}
	return true
}

// grow takes in the means of a batch that took dt nanoseconds.
func (u *usually) grow(cut, whole, dt float64) {
	if u.usual == 0 {
		u.set(cut, whole)
		return
	}
	memory := usualUp
	if cut < u.usual {
		memory = usualDown
	}
	u.set(u.usual+(1-math.Exp(-dt/memory))*(cut-u.usual), u.whole+(1-math.Exp(-dt/usualUp))*(whole-u.whole))
}

func (u *usually) set(usual, whole float64) {
	u.usual, u.whole = usual, whole
	u.cut.Store(int64(u.times(usualCut)))
}

// times is the time that counts as so many times the usual one: a handler of
// 100 us that takes 400 us is not three times as slow as it should be, it has been
// interrupted.
func (u *usually) times(x float64) float64 { return u.usual + (x-1)*max(u.usual, usualLeast) }

// restart lets fresh begin anew with what begins since an instant.
func (u *usually) restart(since int64) {
	u.since.Store(since)
	u.fresh.take()
}

// longer makes the time of what is fresh the usual one if it is more than so many
// times as long.
func (u *usually) longer(times float64) {
	if n, cut, whole := u.fresh.take(); n > 0 && cut/n > u.times(times) {
		u.set(whole/n, whole/n)
	}
}
