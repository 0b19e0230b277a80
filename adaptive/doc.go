// Package adaptive limits what is in flight: how many requests a service works
// on at the same time, by a number or by a strategy that finds it.
//
// A rate says how often; a limit on requests in flight says how many at once,
// and so protects against requests that take too long as well as against too
// many. The two are complements: rate times duration is what is in flight.
//
// # Which one
//
//   - [New] with [Default]: nothing is known about the service. It denies by the
//     queue in front of the processor ([NewRunQueue]), and limits what is in
//     flight while work waits for something else.
//   - [New] with [Fixed]: the capacity is known, such as the connections of a
//     pool.
//   - [New] with [NewBBR]: limits only while a [Signal] tells of overload, or
//     while a dependency hangs. [NewGradient2], [NewVegas] and [NewAIMD] go by
//     response times and failures, without a signal. [Min] combines them.
//     [CompatKratos] is for moving from go-kratos.
//   - [PerKey]: so many for each client, tenant or dependency.
//   - [NewThrottle]: a client that spares an overloaded backend.
//
// All are [algo.Limiter]s and work with every adapter. The lease must be
// released; defer it, and a panicking handler frees its place too.
//
// # What teaches
//
// The time from admission to release of a success is a sample. Canceled and
// ignored work teaches nothing: release streams, hijacked connections and
// websockets with algo.Ignored. A failure teaches only if it took at least as
// long as a success usually does.
//
// # Waiting and shedding
//
// Without an option a request that does not fit is denied at once. [WithQueue]
// lets it wait, bounded in number and time. [WithPriorities] sheds the less
// important first; the [Class] travels in the context ([WithClass]).
//
// # Signals
//
// [CPU], [Load1], [Memory], [Throttled], [Runnable] and [SchedLatency] know
// control groups and take a sample when they are read; nothing here starts a
// goroutine. A signal that cannot be read is unknown after two seconds, and
// then says nothing: strategies do without, and [Limiter.Explain] shows it.
//
// # When not to use it
//
// A limit on requests in flight sees only what has entered the handler. In front
// of handlers that need processor time and never wait, Go queues the requests as
// runnable goroutines before the handler runs, where no such limit sees them:
// take [NewRunQueue] or [Default], or keep the service within its capacity by a
// rate. Even they are asked only when the request has been read: where answering
// takes little more processor time than reading does, such as .1 ms, shed before
// the process. A limit in one process knows nothing of the others. And a limit on what is in flight is no quota: a
// fast caller has as many requests as it likes.
package adaptive
