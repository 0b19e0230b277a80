package strategy

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/wiring"
)

// BBR limits only during overload, to the service's concurrency before it: the highest rate of completions
// over 10 s times the shortest response time without overload over 60 s, plus a quarter. The idea, the
// bandwidth-delay product, is from TCP's BBR (Cardwell et al., ACM Queue 14(5), 2016).
//
// The service is overloaded
//   - when the signal, smoothed over 500 ms, reaches its threshold, until it falls below nine tenths of it;
//   - when at least 20 requests have begun and are in flight, and none has completed for five times the
//     baseline response time and at least 1 s, whatever the signal: a dependency that hangs uses no
//     processor time. Canceled work, and failed or untimed work of at least that time, does not complete.
//
// Overload ends 1 s after its last sign. While nothing completes it admits one request per second as a
// probe, although more may be in flight than allowed.
//
// The baseline response time is the mean of work that began and ended outside overload, and its 60 s do not
// advance during overload, so that a long overload does not become the normal state. Without a baseline, as
// when the process starts while the signal is hot, the limit is 20, or 4 per processor if that is more. At
// that limit, or at the lowest of WithLimits, queues are shortest, so the mean of the work that begins
// there replaces the baseline until the next overload with a known one; then the limit grows to at most a
// quarter above the work in flight. Failures count neither as completions nor as response times. The limit
// does not fall further while more than it is in flight. An unknown signal is no overload. Explain shows
// the [adaptive.Estimate].
//
// Options: [WithSignal] (default: [signal.CPU]), [adaptive.WithLimits] (default: from 20, or GOMAXPROCS if
// that is more, since fewer in flight show no overload, to 2147483647, the limit outside overload) and
// [WithWindow] (default: 10 s in 100 buckets).
//
// Do not use it for handlers that need much processor time and never wait: their requests queue in front of
// the handler and are not in flight. See [adaptive.RunQueue].
func BBR(opts ...adaptive.Option) adaptive.Strategy {
	b, err := newBBR(opts)
	if err != nil {
		return invalid{err}
	}
	return b
}

func newBBR(opts []adaptive.Option) (*bbr, error) {
	set, err := wiring.Read("BBR", opts, "WithSignal", "WithLimits", "WithWindow")
	if err != nil {
		return nil, err
	}
	m, w := set.Machine(), wiring.Get(set, "WithWindow", windowSize{10 * time.Second, 100})
	limits, err := set.Limits("BBR", wiring.Limits{Min: max(m.Procs(), learningFloor), Max: wiring.NoLimit})
	if err != nil {
		return nil, err
	}
	s, err := signalOf(set)
	if err = errors.Join(err, checkWindow(w.span, w.buckets)); err != nil {
		return nil, fmt.Errorf("BBR: %w", err)
	}
	at := m.Now()
	b := &bbr{
		machine: m,
		min:     int64(limits.Min), max: int64(limits.Max), signal: s,
		rates:    newWindow(w.span, w.buckets, minSamples, at),
		baseline: newWindow(baselineSpan, baselineBuckets, minSamples, at),
		updated:  at, level: smooth{tau: float64(500 * time.Millisecond)},
	}
	b.limit.Store(b.max)
	b.lowest.begin(false)
	return b, nil
}

// WithWindow sets the span and the number of buckets over which [BBR] measures rates, and
// [CompatKratos] rates and response times, within the bounds of [NewWindow].
func WithWindow(span time.Duration, buckets int) adaptive.Option {
	return wiring.With("WithWindow", windowSize{span, buckets})
}

type windowSize struct {
	span    time.Duration
	buckets int
}

const (
	minSamples      = 5
	baselineSpan    = time.Minute
	baselineBuckets = 60
	headroom        = 1.25 // the highest rate and the shortest time never coincide
	leaveAt         = 0.9
	coolDown        = int64(time.Second)
	updateEvery     = int64(50 * time.Millisecond)
)

// bbr has no goroutine: the first admission, end, sample or denial after 50 ms updates the limit.
type bbr struct {
	wiring.Owned
	machine  machine.Machine
	min, max int64
	signal   levels
	rates    *Window
	baseline *Window // its clock stops during overload
	lowest   lowest  // replaces baseline

	limit     atomic.Int64
	next      atomic.Int64 // instant of the next update
	calmSince atomic.Int64 // earlier work is no sample; MaxInt64 during overload
	lost      atomic.Int64 // duration of all overload
	dropped   atomic.Int64 // last denial in an overload; 0: none
	hangs     atomic.Bool  // the limit is low because nothing completes
	_         [64]byte     // every request writes the field below
	stall     stall
	_         [64]byte

	mu      sync.Mutex // guards the fields below
	updated int64
	level   smooth
	hot     bool
	until   int64 // end of the overload, without further signs
	over    bool
	hung    bool // whether the last sign was a hang
}

func (b *bbr) Limit() int    { return int(b.limit.Load()) }
func (b *bbr) MaxLimit() int { return int(b.max) }

// Admitted implements [adaptive.Follower].
func (b *bbr) Admitted(at time.Duration, _, inFlight int64) {
	b.stall.began.Add(1)
	b.update(int64(at), inFlight)
}

// Finished implements [adaptive.Follower].
func (b *bbr) Finished(s adaptive.Sample, inFlight int64) {
	b.stall.finish(int64(s.RTT), inFlight, s.Outcome)
	b.update(int64(s.End), inFlight)
}

// Denied updates too, because nothing else can end the overload while every request is denied.
func (b *bbr) Denied(at time.Duration, n, inFlight int64, _ algo.Cause) {
	b.stall.wants(max(n, 1))
	b.update(int64(at), inFlight)
	if n > 0 && b.Limit() < int(b.max) {
		b.dropped.Store(int64(at))
	}
}

// Observe learns from successes.
func (b *bbr) Observe(s adaptive.Sample) {
	at := end(s, b.machine)
	if s.Outcome == algo.Succeeded {
		b.rates.addAt(at, int64(s.RTT))
		if at-int64(s.RTT) >= b.calmSince.Load() {
			b.baseline.addAt(at-b.lost.Load(), int64(s.RTT))
		}
		b.lowest.add(at, s)
	}
	b.update(at, int64(s.InFlight))
}

// update checks for overload once per 50 ms.
func (b *bbr) update(at, inFlight int64) {
	if at < b.next.Load() || !b.mu.TryLock() {
		return
	}
	defer b.mu.Unlock()
	b.next.Store(at + updateEvery)
	if b.over {
		b.lost.Add(max(min(at, b.until)-b.updated, 0))
	}
	b.updated = at
	if hot, hangs := b.overload(at, inFlight); hot || hangs {
		b.hung, b.until = !hot, at+coolDown
	}
	before := b.over
	b.over = at < b.until
	switch {
	case b.over && !before:
		b.calmSince.Store(math.MaxInt64)
		b.lowest.begin(b.baseline.minRT.Load() > 0)
	case before && !b.over:
		b.calmSince.Store(at)
		b.lowest.since.Store(math.MaxInt64)
	}
	b.hangs.Store(b.over && b.hung)
	b.limit.Store(b.nextLimit(at, inFlight, before))
}

// overload reports the signs of overload.
func (b *bbr) overload(at, inFlight int64) (hot, hangs bool) {
	if level, ok := b.signal.ReadAt(at); ok {
		b.level.add(at, level)
	} else {
		b.level.reset()
	}
	enter := 1.0
	if b.hot {
		enter = leaveAt
	}
	b.hot = b.level.known && b.level.value >= enter
	return b.hot, b.stall.hangs(at, inFlight, b.baseline.minRT.Load())
}

// Cause returns hang while nothing completes.
func (b *bbr) Cause() algo.Cause {
	if b.hangs.Load() {
		return cause.Hang
	}
	return cause.Limit
}

// nextLimit returns the new limit; overBefore tells whether there was overload before this update.
func (b *bbr) nextLimit(at, inFlight int64, overBefore bool) int64 {
	b.rates.turn(at)
	b.baseline.turn(at - b.lost.Load())
	if !b.over {
		return b.max
	}
	unknown := min(max(int64(max(learningFloor, 4*b.machine.Procs())), b.min), b.max)
	limit, rate, rt := unknown, b.rates.rate(), b.responseTime()
	current := b.limit.Load()
	if rate > 0 && rt > 0 {
		limit = int64(math.Ceil(min(rate*float64(rt)/1e9*headroom, wiring.NoLimit)))
		if b.lowest.mean > 0 {
			most := max(unknown, int64(headroom*float64(inFlight)))
			if overBefore {
				most = max(most, current)
			}
			limit = min(limit, most)
		}
		limit = min(max(limit, b.min), b.max)
	}
	b.lowest.turn(at, limit, rt == 0 || limit == b.min)
	if overBefore && inFlight > current {
		limit = max(limit, current) // let the excess drain first
	}
	if b.hung && b.stall.probe(at) {
		limit = min(max(limit, inFlight+max(b.stall.wanted.Load(), 1)), b.max)
	}
	return limit
}

// responseTime returns the estimate, 0 without one.
func (b *bbr) responseTime() int64 {
	baseline := b.baseline.minRT.Load()
	if b.lowest.mean > 0 && (b.over || baseline == 0) {
		return b.lowest.mean
	}
	return baseline
}

func (b *bbr) State() adaptive.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := adaptive.State{
		Name: "bbr", Limit: b.Limit(), Overloaded: b.over,
		Signal: b.signal.String(), Level: b.level.value, Known: b.level.known,
		Estimate: b.rates.state(b.machine.Now(), b.responseTime(), b.dropped.Load()),
	}
	switch {
	case s.Overloaded && b.hung:
		s.Cause = "nothing completes"
	case s.Overloaded:
		s.Cause = s.Signal
	}
	return s
}
