// Package adaptive limits concurrency: the number of requests that a service works
// on at the same time, by a constant or by a strategy that tunes itself.
//
// A rate limits how often requests start, a concurrency limit how many run at once.
// The latter also protects against requests that take too long. The two are
// complements: rate times duration is the number in flight.
//
// # Choice
//
//   - [New] with [Default]: nothing is known about the service. It denies by the
//     queue in front of the processor ([RunQueue]), and limits the requests in flight
//     while work waits for something else.
//   - [New] with [Fixed]: the capacity is known, such as the connections of a pool.
//   - Package strategy: BBR, Gradient2, Vegas, AIMD and others. [Min] combines strategies.
//   - [PerKey]: a limit for each client, tenant or dependency.
//   - Package throttle: a client that spares an overloaded backend.
//
// All are [algo.Limiter]s and work with every adapter. The lease must be released;
// defer the release, and a panicking handler frees its slot too.
//
// A constructor of a strategy returns the strategy alone; [New] reports its invalid
// options. A strategy belongs to one limiter.
//
// # Samples
//
// The time from admission to release of a success is a sample. Canceled and untimed
// work is not: release streams, hijacked connections and websockets with
// algo.Succeeded | algo.Untimed. A failure is a sample only if it took at least as long as a success
// usually does, because a dependency that rejects within microseconds is not fast.
//
// [Default], [RunQueue] and every other [Follower] count requests: a cost above 1 counts as 1.
// For other strategies a request of cost n is n units in flight.
//
// # Waiting and shedding
//
// Without an option a request that does not fit is denied at once. [WithQueue] lets
// it wait, bounded in number and time. [WithPriorities] denies the less important
// requests first; the [Class] travels in the context ([WithClass]).
//
// # When not to use it
//
//   - A concurrency limit sees requests only inside the handler. Handlers that need
//     processor time and never wait queue in front of it, as runnable goroutines.
//     Use [RunQueue] or [Default] there, or keep the service within its capacity by a
//     rate.
//   - Even those decide after the request has been read. Where a handler takes little
//     more processor time than reading does, such as 0.1 ms, deny at the socket too
//     (packages httpmw/early, grpcmw/early), or limit the load in front of the
//     process.
//   - A limit in one process does not know other instances.
//   - A concurrency limit is no quota: a fast caller can send any number of requests.
package adaptive
