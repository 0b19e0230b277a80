// Package strategy has strategies for limiters of package adaptive, beside [adaptive.Default],
// [adaptive.RunQueue] and [adaptive.Fixed].
//
//   - [BBR] limits only while a signal shows overload, or while a dependency hangs.
//   - [Gradient2] and [Vegas] follow response times, without a signal.
//   - [AIMD] follows the rejections of a dependency.
//   - [CompatKratos] is for migration from go-kratos.
//
// [adaptive.Min] combines strategies. A constructor returns the strategy alone; [adaptive.New]
// reports its invalid options. A strategy belongs to one limiter.
//
// A failure is a sample only if it took at least as long as a success usually does, because a
// dependency that rejects within microseconds is not fast; for AIMD every failure is one. BBR and CompatKratos count requests:
// a cost above 1 counts as 1. For the others a request of cost n is n units in flight.
package strategy

import (
	"errors"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/wiring"
)

// WithInitial sets the first limit of a strategy, within its limits. The default is
// 20, or the nearest value within the limits.
func WithInitial(n int) adaptive.Option { return wiring.With("WithInitial", n) }

// WithSignal sets the signal that shows overload.
func WithSignal(s signal.Signal) adaptive.Option { return wiring.With("WithSignal", given{s}) }

type given struct{ signal.Signal } // may be nil

type levels interface {
	ReadAt(at int64) (level float64, ok bool)
	String() string
}

// signalOf returns the signal in set, by default the processor's use.
func signalOf(set wiring.Set) (levels, error) {
	s, ok := set["WithSignal"].(given)
	switch {
	case !ok:
		s.Signal = signal.CPU()
	case s.Signal == nil:
		return nil, errors.New("signal is nil")
	}
	most := signal.MaxOf(s.Signal)
	return most.(levels), wiring.Check(most)
}

// learningFloor is the number of requests in flight below which no strategy sees an overload, on up
// to as many processors: ten hanging requests, or some slow ones beside a few others, are none.
const learningFloor = 20

func failed(s adaptive.Sample) bool { return s.Outcome != algo.Succeeded }

// end returns the instant of the release.
func end(s adaptive.Sample, m machine.Machine) int64 {
	if s.End == 0 {
		return m.Now()
	}
	return int64(s.End)
}

type invalid struct{ err error }

func (invalid) Limit() int              { return 1 }
func (invalid) Observe(adaptive.Sample) {}
func (i invalid) Check() error          { return i.err }
