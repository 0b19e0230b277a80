package adaptive

import "github.com/sluice-go/sluice/internal/cause"

// Default is the strategy for a server with unknown bottlenecks: [RunQueue], for the processor, and a
// limit on requests in flight for everything else that work can wait for: a database, another service, a
// pool, a lock. A request needs room in both.
//
// By Little's law work that begins now takes n/r: n requests in flight, r ends per second, with any
// outcome; work of more than 10 s and work that waits for its client do not count. The usual time is the
// mean of successes while nothing waits.
//
//   - The limit starts when more than 20 requests are in flight and n/r exceeds half of the target
//     ([WithTarget]) and twice the usual time, for 0.1 s, or for 0.04 s while n grows; or when nothing
//     ends for a target. It does not start while nearly all work succeeds in its usual time.
//   - It allows r times the goal: four usual times, at most a quarter of the target, at least 1.5 usual
//     times; never fewer than 4. While nothing ends it admits one request per second as a probe.
//   - It ends when less than 12 % of the arrivals find no slot. If it takes the rate of successes along,
//     nothing waited, and n/r is the usual time from then on. If it takes all ends along, it did harm,
//     and pauses for 1 s at first, 30 s at most.
//
// Work that takes longer than the target by nature needs a longer one: until Default has found its time
// out it may deny a tenth of such requests for some ten seconds, or a quarter where half of them are a
// thousand times as fast. Where fewer than 20 requests end within a target, such as behind two
// connections with work of 100 ms, 20 in flight are too late already: just above the capacity Default
// keeps about half of it. Give [New] an upper limit there ([WithLimits]). A dependency that only some
// requests need, such as the misses of a cache, needs a limit of its own. Connections that become eight
// times as slow under overload keep some 40 % of what they can do in the first ten seconds.
//
// Option: [WithTarget]. For other combinations use [Min].
func Default(opts ...Option) Strategy {
	q, err := newRunQueue("Default", opts)
	if err != nil {
		return invalid{err}
	}
	return Min(q, newSojourn(q.machine, q.target, q.overloaded))
}

var _, _, _ Follower = (*minimum)(nil), (*runQueue)(nil), (*sojourn)(nil)

// overloaded reports whether more processor time is requested than there is.
func (q *runQueue) overloaded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reason != cause.None
}
