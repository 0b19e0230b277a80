package adaptive

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// Window remembers, for the last span of time, how much work completed and how
// long it took: the estimate of what a service can carry. The most that
// completed in a bucket is its bandwidth, the shortest mean duration its
// latency without a queue, and the product what must be in flight to use the
// one without exceeding the other.
//
// The bucket that is being filled takes no part. A bucket in which nothing
// completed has no duration. Time is monotonic, of any granularity: buckets may
// be longer than a second, and after any pause what is too old is gone.
//
// Adding costs two atomic additions; one caller for each bucket computes the
// estimates, and readers load them. Nothing allocates. Who adds while a bucket
// begins may count into the one before.
type Window struct {
	*ring
	fewest  int64 // samples that make an estimate; neighbours are merged
	maxPass atomic.Int64
	maxRate atomic.Uint64 // a float: units a second
	minRT   atomic.Int64
}

const (
	shortestBucket = time.Microsecond
	longestBucket  = time.Hour
)

// NewWindow makes a window that spans a time in a number of buckets, 2 to
// 65536, each of 1 us to 1 h.
func NewWindow(span time.Duration, buckets int) (*Window, error) {
	if buckets < 2 || buckets > 1<<16 {
		return nil, fmt.Errorf("adaptive: NewWindow: buckets is %d, want 2 to 65536", buckets)
	}
	if w := span / time.Duration(buckets); w < shortestBucket || w > longestBucket {
		return nil, fmt.Errorf("adaptive: NewWindow: a span of %v in %d buckets is %v for each, want %v to %v",
			span, buckets, w, shortestBucket, longestBucket)
	}
	return newWindow(span, buckets, 1, now()), nil
}

func newWindow(span time.Duration, buckets int, fewest, at int64) *Window {
	return &Window{ring: newRing(int64(span)/int64(buckets), buckets, at), fewest: fewest}
}

// Add counts work that has just completed and took rtt.
func (w *Window) Add(rtt time.Duration) { w.addAt(now(), int64(rtt)) }

// MaxPass is the most that completed in one bucket, 0 if nothing did.
func (w *Window) MaxPass() int64 {
	w.turn(now())
	return w.maxPass.Load()
}

// MaxRate is MaxPass in units a second.
func (w *Window) MaxRate() float64 {
	w.turn(now())
	return w.rate()
}

// MinRT is the shortest mean duration of a bucket, 0 if nothing completed.
func (w *Window) MinRT() time.Duration {
	w.turn(now())
	return time.Duration(w.minRT.Load())
}

func (w *Window) rate() float64 { return math.Float64frombits(w.maxRate.Load()) }

func (w *Window) addAt(at, rtt int64) {
	w.turn(at)
	w.add(1, rtt)
}

// turn begins a new bucket if it is time.
func (w *Window) turn(at int64) {
	first, last, won := w.begin(at)
	if !won {
		return
	}
	for i := first; i <= last; i++ {
		b := w.at(i)
		b.n.Store(0)
		b.sum.Store(0)
	}
	w.estimate(last)
	w.finish(last)
}

// estimate goes through the buckets before last, the oldest first, merges
// neighbours until they have enough samples, and keeps the best of them.
func (w *Window) estimate(last int64) {
	var pass, n, sum, spans int64
	rate, minRT := 0.0, int64(math.MaxInt64)
	for i := last - int64(len(w.buckets)) + 1; i < last; i++ {
		b := w.at(i)
		got := b.n.Load()
		if n == 0 && got == 0 {
			continue
		}
		n, sum, spans = n+got, sum+b.sum.Load(), spans+1
		if n < w.fewest {
			continue
		}
		pass = max(pass, n)
		rate = max(rate, float64(n)*1e9/float64(spans*w.width))
		minRT = min(minRT, (sum+n-1)/n)
		n, sum, spans = 0, 0, 0
	}
	if minRT == math.MaxInt64 {
		minRT = 0
	}
	w.maxPass.Store(pass)
	w.maxRate.Store(math.Float64bits(rate))
	w.minRT.Store(minRT)
}
