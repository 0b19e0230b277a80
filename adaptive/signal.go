package adaptive

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sluice-go/sluice/internal/machine"
)

// Signal measures the load of a resource, independent of the service's own
// latencies. Read returns a level, where 1 is the threshold of overload, and false
// while the level is unknown. It is called concurrently, about 20 times a second
// per strategy, and must be fast.
//
// The signals of this package have no goroutine: Read takes a new sample when the
// last one is too old. After a failed sample the level stays for 2 s and is then
// unknown.
type Signal interface {
	Read() (level float64, ok bool)
}

// SignalFunc makes a signal of a function.
type SignalFunc func() (level float64, ok bool)

// Read calls the function.
func (f SignalFunc) Read() (level float64, ok bool) { return f() }

func (f SignalFunc) check() error {
	if f == nil {
		return errors.New("signal function is nil")
	}
	return nil
}

// WithSignal sets the signal that shows overload to a strategy.
func WithSignal(s Signal) Option {
	return Option{"WithSignal", func(set *settings) { set.signal = s }}
}

// SignalOption adjusts a signal. The constructor that takes the signal reports an
// invalid value.
type SignalOption func(*threshold)

// Threshold sets the value at which a signal shows overload, above 0, in the unit
// of the signal. Each signal states its default.
func Threshold(x float64) SignalOption {
	return func(t *threshold) { t.value, t.given = x, t.given+1 }
}

// threshold is the value of level 1.
type threshold struct {
	name  string
	value float64
	given int // options
}

func newThreshold(name string, value float64, opts []SignalOption) threshold {
	t := threshold{name: name, value: value}
	for _, o := range opts {
		o(&t)
	}
	return t
}

func (t threshold) String() string { return t.name }

func (t threshold) check() error {
	switch {
	case t.given > 1:
		return fmt.Errorf("duplicate option Threshold of the %s signal", t.name)
	case t.value > 0 && !math.IsInf(t.value, 1):
		return nil
	}
	return fmt.Errorf("threshold of the %s signal is %v, want more than 0", t.name, t.value)
}

// MaxOf is the highest level of several signals. Unknown ones do not count. It
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

func (m maximum) Read() (level float64, ok bool) { return m.readOn(machine.Real{}, now()) }

func (m maximum) readOn(on machine.Machine, at int64) (level float64, ok bool) {
	for _, s := range m {
		if l, known := readSignal(s, on, at); known && (!ok || l > level) {
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

// machineSignal is a signal that a strategy reads on its own machine, at an instant
// that it has read already.
type machineSignal interface {
	readOn(m machine.Machine, at int64) (level float64, ok bool)
}

// readSignal reads s. A level that is not a finite number is unknown.
func readSignal(s Signal, m machine.Machine, at int64) (level float64, ok bool) {
	if on, is := s.(machineSignal); is {
		level, ok = on.readOn(m, at)
	} else {
		level, ok = s.Read()
	}
	return level, ok && !math.IsNaN(level) && !math.IsInf(level, 0)
}

func checkSignal(s Signal) error {
	if s == nil {
		return errors.New("signal is nil")
	}
	return check(s)
}

func signalName(s Signal) string {
	if n, ok := s.(fmt.Stringer); ok {
		return n.String()
	}
	return fmt.Sprintf("%T", s)
}
