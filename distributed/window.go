package distributed

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
)

// maxExact is the largest integer up to which a script's numbers are exact.
const maxExact = 1<<53 - 1

// window is a quota in a period of whole microseconds, as every window has one.
type window struct {
	spec   algo.Spec
	quota  int64
	period int64
}

func newWindow(s algo.Spec) (window, error) {
	return window{s, s.Rate.Count, s.Rate.Period.Microseconds()}, microseconds(s.Rate).Validate()
}

func (w *window) maxCost() int64 { return w.quota }

func (w *window) describe() algo.Description {
	return algo.Description{Rate: w.spec.Rate, Quota: w.quota, Window: w.spec.Rate.Period}
}

// local divides the quota by the instances. A quota below their number becomes one unit at a
// time at the same rate.
func (w *window) local(of instances, was algo.Limiter) algo.Limiter {
	s := w.spec
	if s.Rate.Count = of.part(w.quota); w.quota < int64(of.count) {
		s = algo.Spec{Rate: slower(w.spec.Rate, of.count), Burst: 1, MaxKeys: s.MaxKeys, DenyNew: s.DenyNew}
	}
	return portionOf(s, w.spec.Rate, w.spec.Clock(), of, was)
}

// fixedWindow runs [decide.FixedWindow] in microseconds, as fixedwindow.lua does.
// Its state is the end of the window plus the units spent.
type fixedWindow struct {
	window
	decide *decide.FixedWindow
	phase  int64 // added to an instant before it is divided by the period
}

func newFixedWindow(s algo.Spec) (limit, error) {
	if s.Given("zone") {
		return newCalendarWindow(s)
	}
	if !s.Given("aligned") && !s.Spread {
		s.AlignedTo = time.Unix(0, 0)
	}
	w, err := newWindow(s)
	if err != nil {
		return nil, err
	}
	f := &fixedWindow{window: w}
	reference := s.Offset.Microseconds() % f.period
	if !s.Spread {
		reference += s.AlignedTo.UnixMicro() % f.period
	}
	f.phase = ((-reference)%f.period + f.period) % f.period
	f.decide, err = decide.NewFixedWindow(microseconds(s.Rate), reference, s.Spread)
	return f, err
}

// shift returns how much earlier than the period's multiples the windows of key begin.
func (f *fixedWindow) shift(key string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return (f.phase + f.decide.Phase(h.Sum64())) % f.period
}

func (f *fixedWindow) script() *remote.Script { return fixedWindowScript }

func (f *fixedWindow) batches() {}

func (f *fixedWindow) proves() {}

func (f *fixedWindow) acquireArgs(key string, n int64) remote.Args {
	return remote.Args{opAcquire, f.period, f.quota, possible(n, f.quota), f.shift(key)}
}

func (f *fixedWindow) explain(a remote.Answer, n int64) (algo.Decision, algo.Handle) {
	word, voided := a.Reply[0], a.Reply[1]
	if a.Flag() == flagBanned {
		return whileBanned(f, n, word-a.Now), algo.Handle{}
	}
	phase := a.Args[4] - f.phase // of the key
	now := a.Now + phase
	next, answer, quota := f.decide.Answer(word+phase, now, n)
	c := f.decide.Charge(next, now, n, 0)
	return decision(answer, quota), algo.Handle{N: c.N, At: c.At, State: [3]int64{c.A - phase, voided, f.period}}
}

// refundArgs refunds n units while their window lasts.
func (f *fixedWindow) refundArgs(h algo.Handle, n int64) remote.Args {
	if h.State[2] != f.period {
		n = 0
	}
	return remote.Args{opRefund, f.period, f.quota, min(n, h.N, 2*f.period), h.State[0], h.State[1]}
}

// giveBackArgs refunds n units of any charge, at most those of the window and the debt.
func (f *fixedWindow) giveBackArgs(key string, n int64) remote.Args {
	return remote.Args{opGiveBack, f.period, f.quota, min(n, maxExact), f.shift(key)}
}

func (f *fixedWindow) forceArgs(key string, _ algo.Handle, n int64) remote.Args {
	return remote.Args{opForce, f.period, f.quota, min(n, 2*f.quota+1), f.shift(key)}
}

func (f *fixedWindow) resetArgs(key string) remote.Args {
	return remote.Args{opReset, f.period, f.quota, 0, f.shift(key)}
}

// slidingWindow runs [decide.SlidingCounters] in microseconds, as slidingwindow.lua does.
type slidingWindow struct {
	window
	decide *decide.SlidingCounters
}

func newSlidingWindow(s algo.Spec) (limit, error) {
	if s.Given("cells") {
		return nil, fmt.Errorf("does not take cells on Redis, where it counts in this period and the one before: leave them out")
	}
	w, err := newWindow(s)
	if err != nil {
		return nil, err
	}
	if most := maxExact / w.period; w.quota > most { // the product must be exact in a script's numbers
		return nil, fmt.Errorf("rate: count is %d, want at most %d in %v", w.quota, most, s.Rate.Period)
	}
	d, err := decide.NewSlidingCounters(microseconds(s.Rate), 0)
	return &slidingWindow{w, d}, err
}

func (w *slidingWindow) script() *remote.Script { return slidingWindowScript }

func (w *slidingWindow) proves() {}

func (w *slidingWindow) acquireArgs(_ string, n int64) remote.Args {
	return remote.Args{opAcquire, w.period, w.quota, possible(n, w.quota)}
}

func (w *slidingWindow) explain(a remote.Answer, n int64) (algo.Decision, algo.Handle) {
	index, voided := a.Reply[0], a.Reply[3]
	if a.Flag() == flagBanned {
		return whileBanned(w, n, index-a.Now), algo.Handle{}
	}
	state := w.decide.State(index, a.Reply[1], a.Reply[2])
	_, answer, quota := w.decide.Answer(&state, a.Now, n)
	c := w.decide.Charge(&state, a.Now, n, 0)
	c.B = w.period
	return decision(answer, quota), handle(c, voided)
}

// refundArgs refunds n units as far as their period still holds them. Units that
// were added to the charge in another period stay.
func (w *slidingWindow) refundArgs(h algo.Handle, n int64) remote.Args {
	keep, first := max(h.N-n, 0), h.State[0]
	if h.State[1] != w.period {
		return remote.Args{opRefund, w.period, -1}
	}
	return remote.Args{opRefund, w.period, h.At / w.period, h.N - keep, max(min(h.N, first)-keep, 0), h.State[2]}
}

func (w *slidingWindow) forceArgs(_ string, _ algo.Handle, n int64) remote.Args {
	return remote.Args{opForce, w.period, w.quota, min(n, 2*w.quota+1)}
}

func (w *slidingWindow) resetArgs(string) remote.Args { return remote.Args{opReset, w.period} }
