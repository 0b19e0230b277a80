package adaptive

import (
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// fastestMemory is the number of slower successes that mostly erase a fast one.
const fastestMemory = 1024

// sampleOneIn is the number of admissions per measured duration if only RetryAfter depends on it: a
// measurement costs two readings of the clock.
const sampleOneIn = 16

// durations summarizes the duration of completed work.
type durations struct {
	mean       atomic.Int64  // smoothed RTT of successes, nanoseconds
	fastest    atomic.Int64  // a recent short RTT, nanoseconds
	lateSince  atomic.Int64  // first denial for a deadline since the last trial; 0: none
	admissions atomic.Uint32 // counted only if sampled
}

// start returns the instant of an admission, or 0 for one without a sample: under a fixed limit the
// clock would be most of the cost.
func (l *Limiter) start() int64 {
	if l.sampled && l.admissions.Add(1)%sampleOneIn != 1 {
		return 0
	}
	return l.machine.Now()
}

// Release frees the slots of an admission and passes a sample to the strategy. It
// implements [algo.Releaser]; callers use the lease's Release.
func (l *Limiter) Release(h algo.Handle, o algo.Outcome) { l.release(&h, o, 0) }

// ReleaseAfterWait releases work that waited for its client, a time that its tenant is not charged
// for. It implements [algo.ClientWaiter]; callers use the lease's Release.
func (l *Limiter) ReleaseAfterWait(h algo.Handle, o algo.Outcome, waited time.Duration) {
	l.release(&h, o, waited)
}

func (l *Limiter) release(h *algo.Handle, o algo.Outcome, waited time.Duration) {
	// A strategy may panic, so the slot is freed first.
	left := l.working(l.inFlight.Add(-l.slots(h.N)))
	if less := l.lighterBy(h, h.N); less > 0 {
		l.lighter.Add(-less)
	}
	if l.queue != nil {
		defer l.queue.admit()
	}
	if l.tooLate != nil && left > l.limit() {
		l.order.freeAbove()
	}
	if h.At == 0 {
		return
	}
	at := l.machine.Now()
	rtt := max(at-h.At, 1)
	sample := Sample{RTT: time.Duration(rtt), End: time.Duration(at), InFlight: int(*inFlightAt(h)), Outcome: o}
	if l.follower != nil {
		l.follower.Finished(sample, left)
	}
	if claim := *claimOf(h); claim != 0 && l.order.shares != nil {
		l.order.shares.finished(h.Key, *slotsOf(h), at, max(rtt-int64(waited), 1), unpack(claim))
	}
	if l.learn(rtt, o) {
		l.strategy.Observe(sample)
	} else if o == algo.Failed {
		for _, s := range l.failing {
			s.ObserveFastFailure(sample)
		}
	}
}

// learn reports whether the strategy learns from work that took rtt, and updates
// the smoothed RTT. Concurrent updates may lose one another, which the mean
// tolerates.
func (d *durations) learn(rtt int64, o algo.Outcome) bool {
	mean := d.mean.Load()
	if o == algo.Succeeded {
		fastest := d.fastest.Load()
		if fastest == 0 {
			fastest = rtt
		}
		if next := min(rtt, fastest+(rtt-fastest)/fastestMemory); next != d.fastest.Load() {
			d.fastest.Store(next)
		}
	}
	switch {
	case !o.Timed():
		return false
	case o == algo.Failed:
		return mean > 0 && rtt >= mean
	case mean == 0:
		d.mean.Store(rtt)
	default:
		d.mean.Store(max(mean+(rtt-mean)/16, 1))
	}
	return true
}
