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
	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/wiring"
)

// CompatKratos reproduces the BBR limiter of go-kratos/aegis v0.2.0 as published, for services that
// migrate and want the same numbers first.
//
//   - maxPass is the largest number of completions in one of 100 buckets over 10 s ([WithWindow]),
//     minRT the smallest mean duration of a bucket in whole milliseconds, rounded up. An unknown
//     one is 1.
//   - While the processor is used to 80 % or more, and within 1 s of the first denial since then,
//     the limit is floor(maxPass * minRT * bucketsPerSecond / 1000) + 1, and at least 2.
//   - A single duration counts in whole milliseconds, rounded down; one below a millisecond does
//     not count, as in the original, which rounds after the integer division.
//   - The processor average starts at 0 and takes in 5 % of the present every 500 ms.
//
// Unlike the original it does not learn from cancellations and fast failures.
//
// Options: [WithSignal] (default: [signal.CPU]), whose level 1 replaces the 80 %, and [WithWindow]
// (default: 10 s in 100 buckets, of at most 1 s each).
//
// Do not use it for new services. Its average needs 16 s of a busy processor to pass 80 %, when its
// memory of durations, 10 s, holds nothing but overload. [BBR] smooths over 500 ms, and keeps the
// response time from before the overload.
func CompatKratos(opts ...adaptive.Option) adaptive.Strategy {
	set, err := wiring.Read("CompatKratos", opts, "WithSignal", "WithWindow")
	if err != nil {
		return invalid{err}
	}
	w := wiring.Get(set, "WithWindow", windowSize{10 * time.Second, 100})
	s, err := signalOf(set)
	if err = errors.Join(err, checkWindow(w.span, w.buckets)); err == nil && w.span > time.Duration(w.buckets)*time.Second {
		err = fmt.Errorf("a bucket of %v in %d is longer than 1s", w.span, w.buckets)
	}
	if err != nil {
		return invalid{fmt.Errorf("CompatKratos: %w", err)}
	}
	at := set.Machine().Now()
	return &kratos{
		machine: set.Machine(),
		signal:  s,
		pass:    newWindow(w.span, w.buckets, 1, at),
		rt:      newWindow(w.span, w.buckets, 1, at),
		level:   smooth{tau: -float64(kratosEvery) / math.Log(kratosDecay), at: at, known: true},
	}
}

const (
	kratosEvery    = int64(500 * time.Millisecond)
	kratosDecay    = 0.95 // per kratosEvery
	kratosCoolDown = int64(time.Second)
)

func (k *kratos) On(m machine.Machine) { k.machine = m }

type kratos struct {
	wiring.Owned
	machine machine.Machine
	signal  levels
	pass    *Window
	rt      *Window      // in milliseconds
	hot     atomic.Bool  // the level is at least 1
	dropped atomic.Int64 // first denial of this episode, 0: none
	last    atomic.Int64 // last one, 0: none
	next    atomic.Int64

	mu    sync.Mutex // guards level
	level smooth
}

func (k *kratos) Limit() int {
	if k.hot.Load() {
		return k.product(k.machine.Now())
	}
	first := k.dropped.Load()
	if first == 0 {
		return wiring.NoLimit
	}
	at := k.machine.Now()
	if at-first <= kratosCoolDown {
		return k.product(at)
	}
	k.dropped.CompareAndSwap(first, 0)
	return wiring.NoLimit
}

// product returns the limit during overload. The original compares the requests in flight before
// the new one with the product, so one more fits, and it admits whenever at most one is in flight.
func (k *kratos) product(at int64) int {
	k.pass.turn(at)
	k.rt.turn(at)
	perSecond := int64(time.Second) / k.pass.ring.Width
	product := max(k.pass.maxPass.Load(), 1) * max(k.rt.minRT.Load(), 1) * perSecond / 1000
	return int(min(max(product+1, 2), wiring.NoLimit))
}

func (k *kratos) Observe(s adaptive.Sample) {
	at := end(s, k.machine)
	if ms := int64(s.RTT / time.Millisecond); ms > 0 {
		k.rt.addAt(at, ms)
	}
	k.pass.addAt(at, 0)
	k.update(at)
}

// Admitted implements [adaptive.Follower].
func (k *kratos) Admitted(at time.Duration, _, _ int64) { k.update(int64(at)) }

// Finished implements [adaptive.Follower].
func (k *kratos) Finished(s adaptive.Sample, _ int64) { k.update(int64(s.End)) }

// Denied implements [adaptive.Follower].
func (k *kratos) Denied(at time.Duration, _, _ int64, _ algo.Cause) {
	k.last.Store(int64(at))
	if k.hot.Load() && k.dropped.Load() == 0 {
		k.dropped.CompareAndSwap(0, int64(at))
	}
}

// update samples the signal once per kratosEvery.
func (k *kratos) update(at int64) {
	if at < k.next.Load() || !k.mu.TryLock() {
		return
	}
	defer k.mu.Unlock()
	k.next.Store(at + kratosEvery)
	if level, ok := k.signal.ReadAt(at); ok {
		k.level.add(at, level)
	}
	k.hot.Store(k.level.value >= 1)
}

func (k *kratos) State() adaptive.State {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, known := k.signal.ReadAt(k.machine.Now())
	s := adaptive.State{
		Name: "kratos", Limit: k.Limit(), Signal: k.signal.String(), Level: k.level.value, Known: known,
	}
	at := k.machine.Now()
	k.rt.turn(at)
	s.Estimate = k.pass.state(at, k.rt.minRT.Load()*int64(time.Millisecond), k.last.Load())
	if s.Limit < wiring.NoLimit {
		s.Overloaded, s.Cause = true, s.Signal
	}
	return s
}
