// Package algo decides whether n units may be spent now: the contract of all limits of this module, and limits over
// time in one process.
//
//	users := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
//	ok := users.Allow("alice", 1)
//
// This overview lists every exported name, in the order of use.
//
// # Limits
//
// A [RateLimiter] counts the units of any number of keys over time. [NewTokenBucket] is the default choice;
// [NewLeakyBucket], [NewPacer], [NewFixedWindow], [NewSlidingWindow] and [NewSlidingLog] keep other bounds. They take
// a [Rate], by [PerSecond], [PerMinute], [PerHour], [PerDay], [PerSecondFloat], [Per] or [Every], with [Week],
// [Month] and [Quarter] as periods, and each [Option] that it names: [Burst], [MaxWait], [Slack], [Cells], [Zone],
// [StartDay], [MaxKeys], [DenyNew], [Clock]. [Stats], and [StatsOf] with wrappers, describe its table of keys.
//
// # Deciding
//
// A [Limiter] has one method, Acquire(ctx, key, n), and never sleeps. It returns a [Lease]: the [Decision], with a
// [Reason], a [Cause] and a [Source], and the duty to call [Lease.Release] with the [Outcome]. A denial is no error:
// [ErrCost] and [ErrWait] report misuse and a wait that is too long. A RetryAfter may be [Forever]. [Wait], [WaitAll]
// and [Sleep] sleep until the work may start. [Must] is for package variables.
//
// # Several limits
//
// [AcquireAll] charges each [Request] of several limits, or none. [All] is one limiter of several, [ByKey] chooses
// one for each key, [Shadow] puts a limit on trial, [NewSwitch] makes a [Switch], [Unlimited] and [DenyAll] serve
// plans without a limit.
//
// # Limits as data
//
// A [Spec] describes a limit, and [Parse] reads it from text such as "100/min burst 20". [Spec.New] makes the
// limiter, [Spec.Apply] changes one in use.
//
// # Looking
//
// [Peek] answers as Acquire would, and charges nothing. [About] returns the [Description] of a limit, whose [Unit] is
// [Requests] or [ConcurrentRequests]. [Walk] visits the limiters beneath one, [Resolve] returns the one chosen for a
// request. [LeaseFrom] and [LimiterFrom] return what an adapter has acquired.
//
// # Writing a limiter
//
// A limiter needs Acquire only, and returns [NewLease] or [FillLease] with a [Handle] and a [Releaser], or a
// [ClientWaiter]. It is a [Peeker] and a [Describer] if it can answer more cheaply, a [Wrapper] or a [Chooser] over
// others, a [Batcher] if its backend decides several in one step. [Tentative] and [IsTentative] mark a request whose
// denial is no offence, [WithLease] is for adapters. Package algotest tests a limiter.
//
// # When not to use it
//
// A limit of one process does not count requests of others: use package distributed. A rate does not protect a server
// that gets slower: package adaptive limits the work in flight.
package algo
