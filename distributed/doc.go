// Package distributed keeps limits on Redis, shared by all instances of a
// service, and continues to limit while Redis is away.
//
// One [Store] for each client of go-redis (single server, Sentinel, Cluster or
// Ring) makes limiters that satisfy algo.Limiter; [Open] makes the client too:
//
//	store, err := distributed.Open(ctx, "redis://localhost:6379", distributed.WithTimeout(20*time.Millisecond))
//	users, err := store.TokenBucket("per-user", algo.PerSecond(400), algo.Burst(500))
//	lease, err := users.Acquire(ctx, user, 1)
//
// There are token and leaky buckets, pacers, fixed and sliding windows, sliding logs, and limits on
// units in flight; [Store.Limiter] makes all but the last from an algo.Spec. algo.AcquireAll
// decides several buckets, or several fixed windows, of one store in one step. [NewWithTransport]
// makes a store on any other client of Redis. [NewBan] bans keys that keep exceeding a limit.
// Package rules keeps limits in Redis, to be changed while the service runs.
//
// # Decisions
//
// A decision is one run of a Lua script, in one step and by the server's clock;
// the clocks of the instances do not matter. A denial writes nothing, except
// where the server's clock stepped back. Every key expires when it has no effect
// any more. Requests that arrive while others are on the wire are sent together,
// as one script over many keys, so the load on Redis grows more slowly than the
// load on the service.
//
// A script is sent again only if the server has certainly not executed it: a
// lost reply costs one charge, not four. A reply that comes too late for its
// caller is still read for ten timeouts, at least a second, and its charge is refunded; a
// command that reaches the server after its callers have gone charges nothing, by the
// server's clock.
//
// Releases, refunds and settlements are sent without waiting. They are never dropped
// because Redis is away: up to 16384 of each node are kept, and leave before the next
// decisions, or alone as soon as the node answers. Those beyond, those whose connection
// breaks before the reply (except releases of units in flight, which are sent again), and
// those that wait when the store closes are lost: their units stay charged until they drain.
// [Stats] counts both, and the log names the limit.
//
// [Store.Region] makes one limit of several regions, which decide nearby and lease units
// of a limit far away.
//
// A refund returns the remaining weight of the charge, as a local limiter does: the key keeps
// the account of its refunds.
//
// A denial that an earlier one proves does not reach Redis: see [WithDenyCache].
// With [WithBlocks], which is off by default, busy keys are spent from blocks
// that were charged in advance, for an excess that the user states. Several limits in
// one decision do not reach Redis if each of them is answered in one of these ways.
//
// # Without Redis
//
// A decision waits as long as [WithTimeout] says, or until its context ends: then it is a
// denial, because a caller that leaves is no outage of Redis. Several limits that are not
// decided in one step wait that long each. After three consecutive failures, or 16 of 32, the
// breaker of that node opens. Replies that are late because this process lacks CPU are no
// failures of Redis. A probe goes out every 1 to 1.5 s, on a connection that is known to work:
// go-redis' idle ones are tried at once, and the silent ones closed. Redis decides again within
// two seconds of its return. Until then, decisions are made in the process at once, by the
// policy of [WithFallback]: the limit divided by the number of instances, everything, or
// nothing. Such decisions have the Source algo.SourceFallback. No failure of Redis is an error
// of Acquire.
//
// # Bounds
//
// For a token bucket of burst B and rate R, any window of length w, and N
// instances:
//
//   - with Redis: B + R*w, for all instances together;
//   - without Redis, in a time t from its beginning: max(B, N) + R*t, because the
//     shares of the instances, at least one unit each, add up to that, provided that
//     they have been counted, or that at most [WithAssumedInstances] have not, or that
//     [WithInstances] states their number. A cost c above a share is admitted when R/N has
//     paid for it; all instances may do so at once, so a window in the middle of an outage
//     has at most N*c + R*w;
//   - over windows with both, for any number and timing of outages: the sum,
//     B + max(B, N) + 2*R*w. Units that were spent locally are not charged to Redis
//     afterwards;
//   - in addition B for each key and each time that Redis loses data: a restart
//     without persistence, an eviction, a failover that loses the last writes
//     (then at most their charges).
//
// An instance counts a new one within about two seconds (beyond 1000 instances
// proportionally later), so the shares of an outage that begins in between add up
// to more.
//
//   - while instances use one name with different parameters, as in a rolling
//     deployment: the sum of the bounds of both limits, because each sees the charges of
//     the other, and of those at most as many as fill it. The event is [MixedParameters];
//   - after a change of the limit, in use or by a deployment: no key waits longer than one
//     that has just spent everything under the new limit, and RetryAfter suffices. A smaller
//     quota in the same period keeps the units that were spent;
//   - while instances use one name with different algorithms: the sum of the bounds
//     of both limits. Until the charges on a key have expired, instances with
//     another algorithm decide about it locally. The event is [KeyFault];
//   - after the server's clock stepped forward by d, as in a failover to a server that is ahead:
//     at most R*d more, and no more than B for each key;
//   - after the server's clock stepped back by any time: a key is denied for at
//     most one burst, or period, longer than a key that has just spent everything,
//     and at most that is spent twice. A ban by [Limiter.Ban] lasts longer by the step.
//
// # When not to use it
//
// A round trip to Redis costs a hundred times as much as a local decision. If
// the load balancer spreads requests evenly, a local limit of a share for each
// instance is often close enough. Do not use it to protect an instance from
// overload: the capacity of an instance does not depend on the sum; see the
// package adaptive. Do not use it as a quota that is billed: Redis may lose the
// last writes.
//
// It needs Redis 5 or later, or a compatible server that runs Lua scripts, with
// memory enough for all live keys: an evicted key is a full bucket. If it must
// evict, volatile-lru evicts keys that have not been used for a while, and balances of
// [Credits] never; volatile-ttl would evict the limits in use. Keys are named
// prefix:{key}:limit; see [WithPrefix].
package distributed
