package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// CompatKratos is the BBR limiter of go-kratos/aegis v0.2.0 as published, for
// services that move from there and want the same numbers first: maxPass, the
// most that completed in one of 100 buckets over 10 s; minRT, the smallest mean
// duration of a bucket in whole milliseconds, rounded up; both 1 where nothing
// is known. While the processor is used to 80 % or more, and within 1 s of the
// first denial since it was, at most
//
//	floor(maxPass * minRT * bucketsPerSecond / 1000) + 1
//
// requests are in flight, never fewer than 2 at most. A single duration counts
// in whole milliseconds, rounded down, and one below a millisecond does not
// count, as in the original, whose rounding up divides too late. The processor
// average starts at 0 and takes in 5 % of the present every 500 ms. Unlike the
// original it does not learn from cancellations and fast failures.
//
// It is not the one to choose: its average needs 16 s of a busy processor to
// pass 80 %, when its memory of durations, 10 s, holds nothing but overload.
// [NewBBR] is the same idea without these faults.
func CompatKratos() Strategy { return newKratos(CPU()) }

const (
	kratosSpan    = 10 * time.Second
	kratosBuckets = 100
	kratosEvery   = int64(500 * time.Millisecond)
	kratosDecay   = 0.95 // for each kratosEvery
	kratosCool    = int64(time.Second)
)

type kratos struct {
	signal  Signal
	pass    *Window
	rt      *Window      // in milliseconds
	hot     atomic.Bool  // the processor is used to 80 % or more
	dropped atomic.Int64 // the first denial of this episode, 0: none
	next    atomic.Int64

	mu    sync.Mutex // guards level
	level smooth
}

func newKratos(s Signal) *kratos {
	at := now()
	return &kratos{
		signal: s,
		pass:   newWindow(kratosSpan, kratosBuckets, 1, at),
		rt:     newWindow(kratosSpan, kratosBuckets, 1, at),
		level:  smooth{tau: -float64(kratosEvery) / math.Log(kratosDecay), at: at, known: true},
	}
}

func (k *kratos) Limit() int {
	if k.hot.Load() {
		return k.most(now())
	}
	first := k.dropped.Load()
	if first == 0 {
		return noLimit
	}
	at := now()
	if at-first <= kratosCool {
		return k.most(at)
	}
	k.dropped.CompareAndSwap(first, 0)
	return noLimit
}

// most is the limit while there is one. The original compares what is in
// flight before the request with the product, so one more fits; and it admits
// whenever at most one is in flight.
func (k *kratos) most(at int64) int {
	k.pass.turn(at)
	k.rt.turn(at)
	perSecond := int64(time.Second) / k.pass.width
	product := max(k.pass.maxPass.Load(), 1) * max(k.rt.minRT.Load(), 1) * perSecond / 1000
	return int(min(max(product+1, 2), noLimit))
}

func (k *kratos) Observe(s Sample) {
	at := s.end()
	if ms := int64(s.RTT / time.Millisecond); ms > 0 {
		k.rt.addAt(at, ms)
	}
	k.pass.addAt(at, 0)
	k.look(at)
}

func (k *kratos) admitted(at, _, _ int64) { k.look(at) }
func (k *kratos) finished(at, _ int64)    { k.look(at) }

func (k *kratos) denied(cause, int64) {
	if k.hot.Load() && k.dropped.Load() == 0 {
		k.dropped.CompareAndSwap(0, now())
	}
}

// look samples the processor when it is time.
func (k *kratos) look(at int64) {
	if at < k.next.Load() || !k.mu.TryLock() {
		return
	}
	defer k.mu.Unlock()
	k.next.Store(at + kratosEvery)
	if level, ok := readSignal(k.signal); ok {
		k.level.add(at, level)
	}
	k.hot.Store(k.level.value >= 1)
}

func (k *kratos) state() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, known := readSignal(k.signal)
	s := State{
		Name: "kratos", Limit: k.Limit(), Signal: signalName(k.signal), Level: k.level.value, Known: known,
	}
	if s.Limit < noLimit {
		s.Overloaded, s.Cause = true, s.Signal
	}
	return s
}
