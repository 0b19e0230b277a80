// Package signal measures the load of a machine or a process, for the strategies of package
// strategy that limit while a signal shows overload.
//
// [CPU], [Load1], [Memory], [Throttled], [Runnable] and [SchedLatency] respect control groups.
// Reading one takes a sample; this package starts no goroutine. A signal that cannot be read is
// unknown after two seconds. Strategies ignore an unknown signal.
package signal

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/option"
	"github.com/sluice-go/sluice/internal/wiring"
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

// Func makes a signal of a function.
type Func func() (level float64, ok bool)

func (f Func) Read() (level float64, ok bool) { return f() }

// Check rejects a nil function.
func (f Func) Check() error {
	if f == nil {
		return errors.New("signal function is nil")
	}
	return nil
}

// Option adjusts a signal. The constructor that takes the signal reports an
// invalid value.
type Option struct {
	name  string
	apply func(*threshold) error
}

func (o Option) split() (string, func(*threshold) error) { return o.name, o.apply }

// Threshold sets the value at which a signal shows overload, above 0, in the unit
// of the signal. Each signal states its default.
func Threshold(x float64) Option {
	return Option{"Threshold", func(t *threshold) error {
		t.value = x
		if !(x > 0) || math.IsInf(x, 1) {
			return fmt.Errorf("is %v, want more than 0", x)
		}
		return nil
	}}
}

type threshold struct {
	name  string
	value float64
	err   error // of the options
}

func newThreshold(name string, value float64, opts []Option) threshold {
	t := threshold{name: name, value: value}
	if err := option.Apply(&t, opts, Option.split, nil); err != nil {
		t.err = fmt.Errorf("%s signal: %w", name, err)
	}
	return t
}

func (t threshold) String() string { return t.name }

func (t threshold) Check() error { return t.err }

// MaxOf returns the highest level of several signals. Unknown and non-finite levels do not count.
// It panics without a signal or with a nil one.
func MaxOf(signals ...Signal) Signal {
	if len(signals) == 0 {
		panic("signal: MaxOf needs a signal")
	}
	for i, s := range signals {
		if s == nil {
			panic(fmt.Sprintf("signal: MaxOf: signal %d is nil", i))
		}
	}
	return maximum(signals)
}

type maximum []Signal

func (m maximum) Read() (level float64, ok bool) { return m.ReadAt(machine.Real{}.Now()) }

// ReadAt reads the signals at an instant that the caller has already read.
func (m maximum) ReadAt(at int64) (level float64, ok bool) {
	for _, s := range m {
		if l, known := readAt(s, at); known && (!ok || l > level) {
			level, ok = l, true
		}
	}
	return level, ok
}

func readAt(s Signal, at int64) (level float64, ok bool) {
	if on, is := s.(interface{ ReadAt(int64) (float64, bool) }); is {
		level, ok = on.ReadAt(at)
	} else {
		level, ok = s.Read()
	}
	return level, ok && !math.IsNaN(level) && !math.IsInf(level, 0)
}

func (m maximum) Check() error {
	for _, s := range m {
		if err := wiring.Check(s); err != nil {
			return err
		}
	}
	return nil
}

func (m maximum) String() string {
	names := make([]string, len(m))
	for i, s := range m {
		names[i] = fmt.Sprintf("%T", s)
		if n, ok := s.(fmt.Stringer); ok {
			names[i] = n.String()
		}
	}
	if len(m) == 1 {
		return names[0]
	}
	return "max of " + strings.Join(names, ", ")
}
