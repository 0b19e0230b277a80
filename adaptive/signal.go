package adaptive

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Signal tells how loaded something is, whatever the service's own latencies
// say. Read returns a level, where 1 is the threshold of overload, and false
// while the level is not known. It is called from many goroutines, some 20
// times a second for each strategy, and must be fast.
//
// The signals of this package have no goroutine: whoever reads takes a new
// sample when the last one is too old. One that cannot be taken leaves the
// level as it was for 2 s, and then makes it unknown.
type Signal interface {
	Read() (level float64, ok bool)
}

// SignalFunc makes a signal of a function.
type SignalFunc func() (level float64, ok bool)

// Read calls the function.
func (f SignalFunc) Read() (level float64, ok bool) { return f() }

func (f SignalFunc) check() error {
	if f == nil {
		return errors.New("the signal function is nil")
	}
	return nil
}

// WithSignal sets the signal that tells a strategy of overload.
func WithSignal(s Signal) Option {
	return Option{"WithSignal", func(set *settings) { set.signal = s }}
}

// SignalOption adjusts a signal. A value out of range is reported by the
// constructor that takes the signal.
type SignalOption func(*threshold)

// Threshold sets what the signal calls overload, above 0, in the signal's own
// unit; the default is said at each signal.
func Threshold(x float64) SignalOption { return func(t *threshold) { t.value = x } }

// threshold is what level 1 stands for.
type threshold struct {
	name  string
	value float64
}

func newThreshold(name string, value float64, opts []SignalOption) threshold {
	t := threshold{name, value}
	for _, o := range opts {
		o(&t)
	}
	return t
}

func (t threshold) String() string { return t.name }

func (t threshold) check() error {
	if t.value > 0 && !math.IsInf(t.value, 1) {
		return nil
	}
	return fmt.Errorf("threshold of the %s signal is %v, want more than 0", t.name, t.value)
}

// MaxOf is the highest level of several signals, of those that are known. It
// panics without a signal or with a nil one.
func MaxOf(signals ...Signal) Signal {
	if len(signals) == 0 {
		panic("adaptive: MaxOf needs a signal")
	}
	for i, s := range signals {
		if s == nil {
			panic(fmt.Sprintf("adaptive: MaxOf: signal %d is nil", i))
		}
	}
	return maximum(signals)
}

type maximum []Signal

func (m maximum) Read() (level float64, ok bool) {
	for _, s := range m {
		if l, known := readSignal(s); known && (!ok || l > level) {
			level, ok = l, true
		}
	}
	return level, ok
}

func (m maximum) check() error {
	for _, s := range m {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

func (m maximum) String() string {
	names := make([]string, len(m))
	for i, s := range m {
		names[i] = signalName(s)
	}
	return "max of " + strings.Join(names, ", ")
}

// readSignal reads s; what is not a number is not known.
func readSignal(s Signal) (level float64, ok bool) {
	level, ok = s.Read()
	return level, ok && !math.IsNaN(level) && !math.IsInf(level, 0)
}

func signalName(s Signal) string {
	if n, ok := s.(fmt.Stringer); ok {
		return n.String()
	}
	return fmt.Sprintf("%T", s)
}

const (
	sampleEvery = 250 * time.Millisecond
	sampleHolds = 2 * time.Second
)

// sampled is a signal whose level costs too much to measure on each reading.
type sampled struct {
	threshold
	measure func(at int64) (value float64, ok bool) // never called twice at once

	next     atomic.Int64
	measured atomic.Int64 // instant of the last good sample, 0: none
	level    atomic.Uint64
	busy     sync.Mutex
}

func (s *sampled) Read() (level float64, ok bool) {
	at := now()
	if at >= s.next.Load() && s.busy.TryLock() {
		s.sample(at)
		s.busy.Unlock()
	}
	measured := s.measured.Load()
	if measured == 0 || at-measured > int64(sampleHolds) {
		return 0, false
	}
	return math.Float64frombits(s.level.Load()), true
}

func (s *sampled) sample(at int64) {
	if at < s.next.Load() {
		return
	}
	s.next.Store(at + int64(sampleEvery))
	if value, ok := s.measure(at); ok {
		s.level.Store(math.Float64bits(value / s.value))
		s.measured.Store(at)
	}
}

// delta is the growth of a counter between two samples. It is known only when
// both are recent: across a long pause it would average over the pause.
type delta struct {
	at    int64
	value float64
	set   bool
}

func (d *delta) next(at int64, value float64) (growth float64, over time.Duration, ok bool) {
	was := *d
	*d = delta{at, value, true}
	over = time.Duration(at - was.at)
	ok = was.set && over > 0 && over <= sampleHolds && value >= was.value
	return value - was.value, over, ok
}

// smooth is an exponential mean over time: a value counts for as long as it
// lasts, not for as often as it is read.
type smooth struct {
	tau   float64 // nanoseconds
	at    int64
	value float64
	known bool
}

func (s *smooth) add(at int64, x float64) {
	if !s.known {
		s.at, s.value, s.known = at, x, true
		return
	}
	dt := float64(max(at-s.at, 0))
	s.at = max(at, s.at)
	s.value += (1 - math.Exp(-dt/s.tau)) * (x - s.value)
}

func (s *smooth) forget() { s.known = false }
