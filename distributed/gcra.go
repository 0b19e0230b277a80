package distributed

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// limit is an algorithm with its parameters, which never change: SetRate puts
// another one in its place. It writes the script's arguments and reads its
// replies; the deciding is the script's.
type limit interface {
	script() *script
	// acquire is the question whether n >= 0 units fit.
	acquire(n int64) args
	// largest is the most units that can ever be admitted.
	largest() int64
	// explain turns the answer for n into a decision.
	explain(d *algo.Decision, now int64, reply []int64, n int64)
	// remember notes in h what giving back needs.
	remember(h *algo.Handle, e *entry)
	// refund gives back n of the h.N units that were charged.
	refund(h algo.Handle, n int64) args
	// owe charges n more units to what was charged, whether they fit or not.
	owe(h algo.Handle, n int64) args
	// share is what one of the instances may spend by itself; see share.go.
	share(of instances) (allowance, bool)
	// local makes what decides within an allowance.
	local(a allowance, keyed []algo.Option) (stand, error)
	describe() algo.Description
}

// gcra is the generic cell rate algorithm as bucket.lua runs it: in whole
// microseconds of the server's clock. The state is the instant at which the
// bucket is full again (TAT). It is the algorithm of algo.TokenBucket.
type gcra struct {
	rate     algo.Rate
	emission int64 // T: microseconds that one unit costs, rounded up
	burst    int64
	depth    int64 // burst * T
	wait     int64 // the longest delay that is admitted
	most     int64 // the largest cost that can ever be admitted
}

// maxSpan bounds how far a limit may look ahead: burst * period / count + wait.
// Rounding T up makes the burst take longer, up to twice as long at 1e6 per
// second; what it takes is far from where the script's numbers end.
const maxSpan = 365 * 24 * time.Hour

// newGCRA validates; the error names field and value.
func newGCRA(r algo.Rate, burst int64, wait time.Duration) (*gcra, error) {
	if err := validRate(r); err != nil {
		return nil, err
	}
	t := emission(r)
	limit := maxSpan.Microseconds()
	switch {
	case burst < 1:
		return nil, fmt.Errorf("burst is %d, want 1 or more", burst)
	case takesLonger(burst, r, maxSpan):
		return nil, fmt.Errorf("burst is %d: at %v it takes longer than %v to fill", burst, r, maxSpan)
	case wait < 0:
		return nil, fmt.Errorf("max wait is %v, want 0 or more", wait)
	}
	g := &gcra{rate: r, emission: t, burst: burst, depth: burst * t}
	g.wait = min(wait.Microseconds(), max(limit-g.depth, 0))
	g.most = (g.depth + g.wait) / t
	return g, nil
}

// takesLonger reports whether the rate, before it is rounded, needs more than d
// for n > 0 units.
func takesLonger(n int64, r algo.Rate, d time.Duration) bool {
	hi, lo := bits.Mul64(uint64(n), uint64(r.Period))
	mostHi, most := bits.Mul64(uint64(r.Count), uint64(d))
	return hi > mostHi || hi == mostHi && lo > most
}

func validRate(r algo.Rate) error {
	switch {
	case r.Count <= 0:
		return fmt.Errorf("rate: count is %d, want 1 or more", r.Count)
	case r.Period <= 0:
		return fmt.Errorf("rate: period is %v, want more than 0", r.Period)
	case r.Period > maxSpan:
		return fmt.Errorf("rate: period is %v, want %v at most", r.Period, maxSpan)
	case r.Period < time.Duration(r.Count)*time.Microsecond || r.Count > maxSpan.Microseconds():
		return fmt.Errorf("rate: %v is faster than 1e6 per second", r)
	}
	return nil
}

// emission is the time that a unit costs in microseconds, rounded up so that
// the limit is never faster than asked.
func emission(r algo.Rate) int64 {
	count := time.Duration(r.Count)
	t := r.Period / (count * time.Microsecond)
	if r.Period%(count*time.Microsecond) != 0 {
		t++
	}
	return int64(t)
}

// decide is what bucket.lua does with an acquisition of n units at now. The
// tests compare the two, operation by operation.
func (g *gcra) decide(tat, now, n int64) (next, over int64) {
	base := min(max(tat, now), now+g.depth+g.wait)
	fresh := base + n*g.emission
	over = fresh - now - g.depth
	if n > 0 && over <= g.wait {
		return fresh, over
	}
	return min(tat, base), over
}

func (g *gcra) script() *script { return bucketScript }

func (g *gcra) largest() int64 { return g.most }

// acquire asks for what can never fit as a peek: it must not be charged, and
// its cost could be beyond what the script's numbers hold.
func (g *gcra) acquire(n int64) args {
	if n > g.most {
		n = 0
	}
	return args{opAcquire, g.depth, g.wait, n * g.emission}
}

func (g *gcra) explain(d *algo.Decision, now int64, reply []int64, n int64) {
	tat, over, flag := reply[0], reply[1], reply[2]
	debt := max(tat-now, 0)
	if flag == flagBlocked {
		debt = max(debt, g.depth)
	}
	left := max(g.depth-debt, 0) / g.emission
	d.Limit = g.burst
	d.Remaining = left
	d.ResetAfter = micros(tat - now)
	if left < g.burst {
		d.NextAfter = micros(debt - g.depth + (left+1)*g.emission)
	}
	switch {
	case n > g.most:
		d.Reason, d.RetryAfter = algo.Never, algo.Forever
	case n == 0:
		d.Allowed = true
	case flag == flagFine && over <= g.wait:
		d.Allowed, d.Delay = true, micros(over)
	default:
		d.Reason, d.RetryAfter = algo.Quota, micros(over-g.wait)
	}
}

func (g *gcra) remember(h *algo.Handle, e *entry) {
	h.At = e.now + max(e.reply[1], 0)
	h.State[0] = g.emission
}

// refund: a charge drains from its start on, so what it still weighs is at
// least its cost less the time since then. That is what is given back at most;
// giving back all of it, however late, would mint.
func (g *gcra) refund(h algo.Handle, n int64) args {
	t := h.State[0]
	return args{opRefund, min(n, h.N) * t, h.N * t, h.At}
}

func (g *gcra) owe(_ algo.Handle, n int64) args {
	return args{opOwe, g.depth, g.wait, min(n, g.most) * g.emission}
}

func (g *gcra) describe() algo.Description {
	return algo.Description{Quota: g.burst, Window: micros(g.depth)}
}

// micros converts a span of the server's clock, 0 for a negative one.
func micros(us int64) time.Duration { return time.Duration(max(us, 0)) * time.Microsecond }
