// Package algo decides whether n units may be spent now. It has the contract
// that all limits in this module share, and the limits of a single process.
//
// # The contract
//
// A [Limiter] has one method:
//
//	Acquire(ctx, key, n) (Lease, error)
//
// The [Lease] carries the [Decision] and one duty: [Lease.Release]. Limiters
// decide and never sleep. A request admitted with a Delay above 0 starts after
// that Delay; the adapters and [Wait] sleep it out. A denial is a decision, not
// an error; errors report misuse and infrastructure failures.
//
// # Keys
//
// The key is a parameter, so one limiter serves all users. A limiter stores
// only keys with debt, about [MaxKeys] of them, in flat memory that needs no
// clean-up: a key without debt is the same as a new one. When more keys have
// debt at the same time, a new one replaces the one of 16 with the least debt
// ([MaxKeys]).
//
// # Several limits
//
// [AcquireAll] charges several limits, all or none, and [All] makes one limiter
// of them. [ByKey] selects the limiter of a key, [Shadow] evaluates one without
// enforcing it, [NewSwitch] turns one on and off, and package guard bans keys that keep exceeding it. Each is a
// Limiter over Limiters.
//
// # Limits as data
//
// A [Spec] describes a limit. [Parse] reads it from text such as
// "100/min burst 20 wait 500ms", [Spec.New] makes the limiter, and [Spec.Apply]
// changes one in use.
//
// # Design
//
// Each algorithm is a pure function from a state, an instant and a cost to the
// next state and a decision. That function is the body of a compare-and-swap,
// the model for checking the concurrent code, and the oracle for the scripts on
// Redis.
//
// Most of the time of a decision goes into reading the clock, so it is read
// once. Debt is stored as an instant, not as a number of tokens with a
// timestamp. With a reading that is late, because a goroutine slept after it,
// the limiter can then only deny too much, never admit too much.
//
// # When not to use it
//
// A limit in one process does not count requests in others: behind a load
// balancer each of N processes admits the whole limit. Divide it, or use package
// distributed. A rate limits how often requests come, not how long they take:
// package adaptive limits requests in flight.
package algo
