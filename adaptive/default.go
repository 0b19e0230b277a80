package adaptive

// Default is the strategy for a server with unknown bottlenecks. It combines
// [RunQueue], for the processor, with a limit on requests in flight for everything
// else that work can wait for: a database, another service, a pool, a lock.
//
// The in-flight limit starts
//   - when at least 20 requests are in flight, successes take four times their
//     baseline, and no queue in front of the processor explains it;
//   - when at least 20 requests have begun and are in flight, and nothing completes
//     for 1 s, or five baselines if that is more. Canceled work has not been done, and
//     failed or untimed work of at least that time has given up: neither completes.
//
// It then allows twice the work that completes in one baseline (Little's law), in
// addition to work that stays in flight for long. It allows more while successes
// take less than two baselines and requests are denied. It ends 1 s after the last
// sign of a queue, and when at least 85 % of the arrivals find a slot. While
// nothing completes it admits one request per second as a probe. If work still
// takes more than three baselines although no more is in flight, no queue makes it
// slow, and the new time becomes the baseline.
//
// The baseline is the mean time of successes, known after 100 of them. Where times are
// compared, a baseline below 10 ms counts as 10 ms: the limit starts 30 ms above the
// baseline, or at four baselines if that is more. One response counts as at most ten
// baselines, so a slowdown is certain to be noticed only if it affects more than a
// third of the requests. Put a separate limit in front of a queue that only few
// requests meet, such as cache misses. Work that waits for its client, such as a
// stream, is not counted; see [algo.Lease.AwaitClient].
//
// Option: [WithTarget]. For other combinations use [Min].
func Default(opts ...Option) Strategy {
	q, err := newRunQueue("Default", opts)
	if err != nil {
		return invalid{err}
	}
	return Min(q, newLatency(q.machine, q.queued))
}

// queued reports whether work waited recently for the processor, which explains
// long response times.
func (q *runQueue) queued() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue > .5
}
