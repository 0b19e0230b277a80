// Package algo decides whether n units may be spent now: the contract that
// every limit in this module keeps, and the limits that live in one process.
//
// # The contract
//
// A [Limiter] has one method:
//
//	Acquire(ctx, key, n) (Lease, error)
//
// The [Lease] carries the [Decision] and one duty: [Lease.Release]. Limiters
// decide and never sleep. What is admitted with a Delay above 0 starts after
// that Delay; the adapters and [Wait] sleep it out. A denial is a decision and
// not an error; an error is misuse or infrastructure.
//
// # Keys
//
// The key is a parameter, so one limiter serves all users. A limiter remembers
// only keys that owe something, at most [MaxKeys] of them, in flat memory that
// needs no clean-up: a key that owes nothing is the same as one never seen.
// When more keys than that owe something at the same time, new ones share a
// fixed set of buckets ([OnFull]); none is forgiven its debt, so rotating keys
// gains nothing.
//
// # Several limits
//
// [AcquireAll] charges all of several limits or none, [All] makes one limiter
// of them. [ByKey] chooses the limiter for a key, [Shadow] tries one out,
// [NewSwitch] takes one away, [AllowList] and [DenyList] except keys from one,
// and [NewBan] bans who goes on asking. Each is a Limiter over Limiters
// and fits wherever one does.
//
// # Limits as data
//
// [Parse] reads "100/min burst 20 wait 500ms" and a [Spec] makes the limiter,
// for limits that live in files.
//
// # Why it looks like this
//
// Each algorithm is a pure function from a state, an instant and a cost to the
// next state and a decision. That function is the body of a compare-and-swap,
// the model that the concurrent code is checked against, and the oracle for
// the scripts that do the same on Redis.
//
// The clock is most of what a decision costs, so it is read once. Debt is kept
// as an instant, not as a number of tokens with a time stamp: a clock that
// seems to go back, because a goroutine slept after reading it, can then only
// deny what it might have admitted.
//
// # When not to use it
//
// A limit in one process knows nothing of the others: behind a load balancer
// each of N processes admits the whole limit. Divide it, or use package
// distributed. A rate protects against callers that ask too much, not against
// requests that take too long; that is what limits on requests in flight are
// for (package adaptive).
package algo
