package adaptive

import "github.com/sluice-go/sluice/internal/cause"

// Default limits a server whose bottleneck is unknown. It denies nothing until new work would take too
// long, because goroutines queue for the processor (see [RunQueue]), or because requests wait for
// something else, such as a connection pool, a lock or another service. Then it admits as many requests as
// can finish in time and denies the rest at once.
//
// Use one Default for each server. Choose something else where
//   - the capacity is known, such as the size of a pool: use [Fixed];
//   - only some requests need a dependency, such as cache misses: give the dependency a limiter of its
//     own;
//   - requests normally take longer than half of the target: raise it by [WithTarget]. Otherwise Default
//     denies 15 % of them in the first minute (a quarter if half of them are a thousand times as fast),
//     then about 3 %;
//   - fewer than 20 requests end within a target, so that 20 in flight are late already: pass [WithLimits]
//     to [New];
//   - every client leaves before its answer: Default cannot tell whether its denials help.
//
// By Little's law, new work takes n/r with n requests in flight and r ends per second. Once that exceeds
// half of the target, with more than 20 in flight, Default checks for a queue: the time of work grows with
// n, and r stays when n falls. It limits a queue to half of a target's worth of ends, at least 4, until
// less than 12 % of the arrivals find no slot. While nothing ends it admits one request per second as a
// probe. It recovers from any wrong estimate within about 15 seconds.
//
// Options: [WithTarget], [WithHook]. For other combinations use [Min].
func Default(opts ...Option) Strategy {
	q, err := newRunQueue("Default", opts)
	if err != nil {
		return invalid{err}
	}
	return Min(q, newSojourn(q.machine, q.target, q.overloaded, q.hook))
}

var _, _, _ Follower = (*minimum)(nil), (*runQueue)(nil), (*sojourn)(nil)

// overloaded reports whether requests need more processor time than the process gets.
func (q *runQueue) overloaded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reason != cause.None
}
