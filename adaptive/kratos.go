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

// CompatKratos is a strategy that reproduces the BBR limiter of go-kratos/aegis
// v0.2.0 as published, for services that migrate and want the same numbers first.
//
//   - maxPass is the largest number of completions in one of 100 buckets over 10 s,
//     minRT the smallest mean duration of a bucket in whole milliseconds, rounded
//     up. Both are 1 where they are unknown.
//   - While the processor is used to 80 % or more, and within 1 s of the first
//     denial since then, the limit is floor(maxPass * minRT * bucketsPerSecond /
//     1000) + 1, and at least 2.
//   - A single duration counts in whole milliseconds, rounded down; one below a
//     millisecond does not count, as in the original, which rounds after the
//     integer division.
//   - The processor average starts at 0 and takes in 5 % of the present every
//     500 ms.
//
// Unlike the original it does not learn from cancellations and fast failures.
//
// It takes the option [WithSignal] (default: [CPU]), whose level 1 replaces the
// 80 %.
//
// Do not use it for new services. Its average needs 16 s of a busy processor to
// pass 80 %, when its memory of durations, 10 s, holds nothing but overload. [BBR]
// is the same idea without these faults.
func CompatKratos(opts ...Option) Strategy {
	s := settings{signal: CPU()}
	if err := configure("CompatKratos", &s, opts, "WithSignal"); err != nil {
		return invalid{err}
	}
	if err := checkSignal(s.signal); err != nil {
		return invalid{fmt.Errorf("CompatKratos: %w", err)}
	}
	at := s.machine.Now()
	return &kratos{
		machine: s.machine,
		signal:  s.signal,
		pass:    newWindow(kratosSpan, kratosBuckets, 1, at),
		rt:      newWindow(kratosSpan, kratosBuckets, 1, at),
		level:   smooth{tau: -float64(kratosEvery) / math.Log(kratosDecay), at: at, known: true},
	}
}

const (
	kratosSpan     = 10 * time.Second
	kratosBuckets  = 100
	kratosEvery    = int64(500 * time.Millisecond)
	kratosDecay    = 0.95 // per kratosEvery
	kratosCoolDown = int64(time.Second)
)

type kratos struct {
	owned
	machine machine.Machine
	signal  Signal
	pass    *Window
	rt      *Window      // in milliseconds
	hot     atomic.Bool  // the level is at least 1
	dropped atomic.Int64 // first denial of this episode, 0: none
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
		return noLimit
	}
	at := k.machine.Now()
	if at-first <= kratosCoolDown {
		return k.product(at)
	}
	k.dropped.CompareAndSwap(first, 0)
	return noLimit
}

// product is the limit during overload. The original compares the requests in
// flight before the new one with the product, so one more fits; and it admits
// whenever at most one is in flight.
func (k *kratos) product(at int64) int {
	k.pass.turn(at)
	k.rt.turn(at)
	perSecond := int64(time.Second) / k.pass.Width
	product := max(k.pass.maxPass.Load(), 1) * max(k.rt.minRT.Load(), 1) * perSecond / 1000
	return int(min(max(product+1, 2), noLimit))
}

func (k *kratos) Observe(s Sample) {
	at := s.end(k.machine)
	if ms := int64(s.RTT / time.Millisecond); ms > 0 {
		k.rt.addAt(at, ms)
	}
	k.pass.addAt(at, 0)
	k.update(at)
}

func (k *kratos) admitted(at, _, _ int64)                 { k.update(at) }
func (k *kratos) finished(at, _, _ int64, _ algo.Outcome) { k.update(at) }

func (k *kratos) denied(cause, int64, int64, int64) {
	if k.hot.Load() && k.dropped.Load() == 0 {
		k.dropped.CompareAndSwap(0, k.machine.Now())
	}
}

// update samples the signal when it is time.
func (k *kratos) update(at int64) {
	if at < k.next.Load() || !k.mu.TryLock() {
		return
	}
	defer k.mu.Unlock()
	k.next.Store(at + kratosEvery)
	if level, ok := readSignal(k.signal, k.machine, at); ok {
		k.level.add(at, level)
	}
	k.hot.Store(k.level.value >= 1)
}

func (k *kratos) state() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, known := readSignal(k.signal, k.machine, k.machine.Now())
	s := State{
		Name: "kratos", Limit: k.Limit(), Signal: signalName(k.signal), Level: k.level.value, Known: known,
	}
	if s.Limit < noLimit {
		s.Overloaded, s.Cause = true, s.Signal
	}
	return s
}
