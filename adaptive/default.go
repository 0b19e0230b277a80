package adaptive

import "github.com/sluice-go/sluice/internal/cause"

// Default is the strategy for a server with unknown bottlenecks: [RunQueue], for the processor, and a
// limit on requests in flight for everything else that work can wait for: a database, another service, a
// pool, a lock. A request needs room in both.
//
// Use another one for a known pool ([Fixed]), and a limiter of its own for a dependency that only some
// requests need, such as the misses of a cache. Work that takes longer than half of the target by nature
// needs a longer one ([WithTarget]): of such requests 15 % are denied in the first minute, a quarter where
// half of them are a thousand times as fast, and then some 3 %.
//
// By Little's law work that begins now takes n/r: n requests in flight, r ends per second. While that is
// at most half of the target nothing is denied. Beyond it, with more than 20 in flight, Default asks
// whether work queues: whether its time grows with the requests in flight, and whether r falls with them.
// A queue gets a limit of half of a target's worth of ends, at least 4, until less than 12 % of the
// arrivals find no slot. While nothing ends Default admits one request per second as a probe.
//
// It believes nothing for ever: from any state it is right again within some 15 seconds. Where fewer
// than 20 requests end within a target, 20 in flight are too late already: give [New] an upper limit
// there ([WithLimits]). Where every client leaves before it has an answer, Default denies a part of the
// requests without knowing whether that helps.
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

// overloaded reports whether more processor time is requested than there is.
func (q *runQueue) overloaded() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reason != cause.None
}
