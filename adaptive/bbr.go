package adaptive

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
)

// NewBBR makes a strategy that limits only while something says that the
// service is overloaded, and then to what the service carried before: the
// highest rate of completions over 10 s times the shortest response time
// without overload over 60 s, plus a quarter. The idea, the bandwidth-delay
// product, is that of TCP's BBR (Cardwell et al., ACM Queue 14(5), 2016).
//
// Overloaded is when the signal, smoothed over 500 ms, reaches its threshold,
// until it falls below nine tenths of it; or when work is in flight and none
// has completed for five times the usual response time and at least 1 s,
// whatever the signal says: a dependency that hangs burns no processor time.
// Overload ends 1 s after the last sign of it.
//
// The response time is learnt only from work that began and ended outside of
// overload, and its 60 s pass only there too, so a long overload is not taken
// for the normal state. Failures count neither as rate nor as response time.
// While more is in flight than the limit allows the limit is not lowered
// further. Without an estimate it is 20, or 4 for each processor if that is
// more. An unknown signal is no overload; [Limiter.Explain] shows it.
//
// Options: [WithSignal] (default: [CPU]), [WithLimits] (default: from
// GOMAXPROCS, since fewer cannot use the processors, to 2147483647, which is
// what an idle strategy answers) and [WithWindow] (default: 10 s in 100 buckets).
//
// Do not use it where the work waits in front of the handler, as it does in
// front of handlers that need much processor time and never wait: what does
// not run is not in flight.
func NewBBR(opts ...Option) (Strategy, error) {
	const who = "NewBBR"
	set := settings{
		min: max(machine.Procs(), 1), max: noLimit,
		span: 10 * time.Second, buckets: 100, signal: CPU(),
	}
	if err := configure(who, &set, opts, "WithSignal", "WithLimits", "WithWindow"); err != nil {
		return nil, err
	}
	if set.signal == nil {
		return nil, fmt.Errorf("adaptive: %s: the signal is nil", who)
	}
	if err := check(set.signal); err != nil {
		return nil, fmt.Errorf("adaptive: %s: %w", who, err)
	}
	if _, err := NewWindow(set.span, set.buckets); err != nil {
		return nil, fmt.Errorf("adaptive: %s: %w", who, err)
	}
	at := now()
	b := &bbr{
		min: int64(set.min), max: int64(set.max), signal: set.signal,
		rates:    newWindow(set.span, set.buckets, fewestSamples, at),
		baseline: newWindow(baselineSpan, baselineBuckets, fewestSamples, at),
		looked:   at, level: smooth{tau: float64(500 * time.Millisecond)},
	}
	b.word.Store(b.max)
	return b, nil
}

// WithWindow sets the span and the number of buckets over which rates are
// measured; see [NewWindow] for what is possible.
func WithWindow(span time.Duration, buckets int) Option {
	return Option{"WithWindow", func(s *settings) { s.span, s.buckets = span, buckets }}
}

const (
	fewestSamples   = 5
	baselineSpan    = time.Minute
	baselineBuckets = 60
	headroom        = 1.25 // the largest rate and the shortest time are never seen together
	leaveAt         = 0.9
	coolDown        = int64(time.Second)
	lookForOverload = int64(50 * time.Millisecond)
	hangsAfter      = int64(time.Second)
	hangsBaselines  = 5
	hung            = "nothing completes"
)

// bbr is driven by what happens: every admission, end and sample passes the
// time along, and the first one after 50 ms looks for overload. A denial does
// nothing; while there are only denials, nothing has changed either.
type bbr struct {
	min, max int64
	signal   Signal
	rates    *Window
	baseline *Window // its time stands still during overload

	word      atomic.Int64 // the limit in force
	next      atomic.Int64 // when to look again
	lastEnd   atomic.Int64 // the last completion
	busySince atomic.Int64 // when the first of what is in flight began
	calmSince atomic.Int64 // work that began earlier does not teach; never while overloaded
	lost      atomic.Int64 // how much time was spent overloaded

	mu     sync.Mutex // guards what follows
	looked int64
	level  smooth
	hot    bool
	until  int64 // when overload ends, if nothing renews it
	over   bool
	cause  string
}

func (b *bbr) Limit() int   { return int(b.word.Load()) }
func (b *bbr) ceiling() int { return int(b.max) }

func (b *bbr) admitted(at, n, inFlight int64) {
	if inFlight <= n {
		b.busySince.Store(at)
	}
	b.look(at, inFlight)
}

func (b *bbr) finished(at, inFlight int64) {
	b.lastEnd.Store(at)
	b.look(at, inFlight)
}

func (b *bbr) denied(cause, int64) {}

// Observe learns from successes. That work completed at all is told to
// finished, whatever its outcome.
func (b *bbr) Observe(s Sample) {
	at := s.end()
	b.lastEnd.Store(at)
	if s.Outcome == algo.Succeeded {
		b.rates.addAt(at, int64(s.RTT))
		if at-int64(s.RTT) >= b.calmSince.Load() {
			b.baseline.addAt(at-b.lost.Load(), int64(s.RTT))
		}
	}
	b.look(at, int64(s.InFlight))
}

// look finds out whether the service is overloaded, when it is time.
func (b *bbr) look(at, inFlight int64) {
	if at < b.next.Load() || !b.mu.TryLock() {
		return
	}
	defer b.mu.Unlock()
	b.next.Store(at + lookForOverload)
	if b.over {
		b.lost.Add(max(min(at, b.until)-b.looked, 0))
	}
	b.looked = at
	if cause := b.judge(at, inFlight); cause != "" {
		b.cause, b.until = cause, at+coolDown
	}
	was := b.over
	b.over = at < b.until
	switch {
	case b.over && !was:
		b.calmSince.Store(math.MaxInt64)
	case was && !b.over:
		b.calmSince.Store(at)
	}
	b.word.Store(b.limit(at, inFlight, was))
}

// judge returns what speaks for overload now, "" if nothing does.
func (b *bbr) judge(at, inFlight int64) string {
	if level, ok := readSignal(b.signal); ok {
		b.level.add(at, level)
	} else {
		b.level.forget()
	}
	enter := 1.0
	if b.hot {
		enter = leaveAt
	}
	b.hot = b.level.known && b.level.value >= enter
	since := max(b.lastEnd.Load(), b.busySince.Load())
	usual := max(hangsBaselines*b.baseline.minRT.Load(), hangsAfter)
	switch {
	case b.hot:
		return signalName(b.signal)
	case inFlight > 0 && since > 0 && at-since > usual:
		return hung
	}
	return ""
}

// limit is what to allow from now on.
func (b *bbr) limit(at, inFlight int64, was bool) int64 {
	b.rates.turn(at)
	b.baseline.turn(at - b.lost.Load())
	if !b.over {
		return b.max
	}
	limit := int64(max(20, 4*machine.Procs()))
	if rate, rt := b.rates.rate(), b.baseline.minRT.Load(); rate > 0 && rt > 0 {
		limit = int64(math.Ceil(min(rate*float64(rt)/1e9*headroom, noLimit)))
	}
	limit = min(max(limit, b.min), b.max)
	if before := b.word.Load(); was && inFlight > before {
		return max(limit, before) // let it drain first
	}
	return limit
}

func (b *bbr) state() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := State{
		Name: "bbr", Limit: b.Limit(), Overloaded: b.over,
		Signal: signalName(b.signal), Level: b.level.value, Known: b.level.known,
	}
	if s.Overloaded {
		s.Cause = b.cause
	}
	return s
}
