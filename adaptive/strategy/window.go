package strategy

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/internal/window"
	"github.com/sluice-go/sluice/internal/machine"
)

// Window measures how much work completed in the last span of time, and how long it took. The
// largest completions of a bucket are a service's bandwidth, the shortest mean duration of a bucket
// its latency without a queue, and their product the requests in flight that use the bandwidth at
// that latency.
//
// The current bucket does not count yet. A bucket without completions has no duration. Time is
// monotonic; buckets may be longer than a second, and nothing older than the span counts, however
// long the pause.
//
// Adding costs two atomic additions. One caller per bucket computes the estimates, and readers load
// them. Nothing allocates. An addition that coincides with the start of a bucket may count into the
// previous one.
type Window struct {
	ring       *window.Ring
	minSamples int64 // samples that make an estimate; smaller neighbors are merged
	maxPass    atomic.Int64
	maxRate    atomic.Uint64 // a float: units per second
	minRT      atomic.Int64
	samples    atomic.Int64
}

const (
	minBucketWidth = time.Microsecond
	maxBucketWidth = time.Hour
)

// NewWindow makes a window over span, divided into 2 to 65536 buckets of 1 us to
// 1 h each.
func NewWindow(span time.Duration, buckets int) (*Window, error) {
	if err := checkWindow(span, buckets); err != nil {
		return nil, fmt.Errorf("strategy: NewWindow: %w", err)
	}
	return newWindow(span, buckets, 1, machine.Real{}.Now()), nil
}

func checkWindow(span time.Duration, buckets int) error {
	if buckets < 2 || buckets > 1<<16 {
		return fmt.Errorf("buckets is %d, want 2 to 65536", buckets)
	}
	if w := span / time.Duration(buckets); w < minBucketWidth || w > maxBucketWidth {
		return fmt.Errorf("bucket width is %v (a span of %v in %d buckets), want %v to %v",
			w, span, buckets, minBucketWidth, maxBucketWidth)
	}
	return nil
}

func newWindow(span time.Duration, buckets int, minSamples, at int64) *Window {
	return &Window{ring: window.New(int64(span)/int64(buckets), buckets, at), minSamples: minSamples}
}

// Add counts one unit of work that has just completed after rtt.
func (w *Window) Add(rtt time.Duration) { w.addAt(machine.Real{}.Now(), int64(rtt)) }

// MaxPass returns the largest number of completions in one bucket, 0 if there are none.
func (w *Window) MaxPass() int64 {
	w.turn(machine.Real{}.Now())
	return w.maxPass.Load()
}

// MaxRate returns the highest rate of completions in a bucket, per second.
func (w *Window) MaxRate() float64 {
	w.turn(machine.Real{}.Now())
	return w.rate()
}

// MinRT returns the shortest mean duration of a bucket, 0 without completions.
func (w *Window) MinRT() time.Duration {
	w.turn(machine.Real{}.Now())
	return time.Duration(w.minRT.Load())
}

// state returns the estimate at an instant, with the response time rt and the instant dropped of the last
// denial (0: none).
func (w *Window) state(at, rt, dropped int64) *adaptive.Estimate {
	w.turn(at)
	e := &adaptive.Estimate{MaxPass: w.maxPass.Load(), MinRT: time.Duration(rt), Samples: w.samples.Load()}
	if dropped > 0 {
		e.LastDrop = max(time.Duration(at-dropped), 1)
	}
	return e
}

func (w *Window) rate() float64 { return math.Float64frombits(w.maxRate.Load()) }

func (w *Window) addAt(at, rtt int64) {
	w.turn(at)
	w.ring.Add(1, rtt)
}

// turn begins a new bucket when the current one is over.
func (w *Window) turn(at int64) {
	first, last, won := w.ring.Begin(at)
	if !won {
		return
	}
	for i := first; i <= last; i++ {
		b := w.ring.At(i)
		b.N.Store(0)
		b.Sum.Store(0)
	}
	w.estimate(last)
	w.ring.Finish(last)
}

// estimate keeps the best of the buckets before last, oldest first, and merges neighbors with too
// few samples.
func (w *Window) estimate(last int64) {
	var pass, n, sum, spans, samples int64
	rate, minRT := 0.0, int64(math.MaxInt64)
	for i := last - int64(w.ring.Len()) + 1; i < last; i++ {
		b := w.ring.At(i)
		count := b.N.Load()
		samples += count
		if n == 0 && count == 0 {
			continue
		}
		n, sum, spans = n+count, sum+b.Sum.Load(), spans+1
		if n < w.minSamples {
			continue
		}
		pass = max(pass, n)
		rate = max(rate, float64(n)*1e9/float64(spans*w.ring.Width))
		minRT = min(minRT, (sum+n-1)/n)
		n, sum, spans = 0, 0, 0
	}
	if minRT == math.MaxInt64 {
		minRT = 0
	}
	w.maxPass.Store(pass)
	w.samples.Store(samples)
	w.maxRate.Store(math.Float64bits(rate))
	w.minRT.Store(minRT)
}
