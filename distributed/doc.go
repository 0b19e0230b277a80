// Package distributed keeps limits on Redis, shared by all instances of a
// service, and goes on limiting when Redis is away.
//
// One [Store] for each client of go-redis (single server, Sentinel, Cluster or
// Ring) makes limiters that satisfy algo.Limiter:
//
//	store, err := distributed.New(client, distributed.WithTimeout(20*time.Millisecond))
//	users, err := store.TokenBucket("per-user", algo.PerSecond(400), algo.Burst(500))
//	lease, err := users.Acquire(ctx, user, 1)
//
// There are token and leaky buckets, pacers, fixed and sliding windows, sliding
// logs, and limits on what is in flight. Buckets of one store that are asked
// together, with algo.AcquireAll, are decided in one step. [Store.Rules] keeps
// limits in Redis, to be changed while the service runs.
//
// # How it decides
//
// A decision is one run of a Lua script, in one step and by the server's clock;
// the clocks of the instances do not matter. A denial writes nothing. Every key
// expires when it means nothing any more. Decisions that are asked for while
// others are on the wire go out together, as one script over many keys, so the
// load on Redis grows more slowly than the load on the service.
//
// A script is never sent twice unless the server has certainly not run the
// first: a lost reply costs one charge, not four. A reply that comes after its
// caller has given up is still read, and what it charged is given back.
//
// What a denial proves is not asked again: see [WithDenyCache]. With
// [WithBlocks], which is off by default, busy keys are spent from blocks that
// were charged in advance, for an excess that the user states.
//
// # When Redis is away
//
// A decision waits [WithTimeout] at most, or until its context ends; several
// limits that are not decided in one step wait that long each. After three
// failures in a row, or 16 of 32, a breaker opens, and until a probe finds Redis well again
// decisions are made in the process at once, by the policy of [WithFallback]:
// the limit divided by the number of instances, everything, or nothing. Such
// decisions say so in their Source. No failure of Redis is an error of Acquire.
//
// # Bounds
//
// For a token bucket of burst B and rate R, any window of length w, and N
// instances:
//
//   - with Redis: B + R*w, for all instances together;
//   - without Redis, from beginning to end: B + R*w again, as the parts of the
//     instances add up to the limit, provided that each has reached Redis once,
//     or WithInstances says how many there are;
//   - over windows with both, for any number and timing of outages: twice that,
//     2*(B + R*w). What was spent locally is not charged to Redis afterwards;
//   - in addition B for each key and each time that Redis loses what it holds: a
//     restart without persistence, an eviction, a failover that loses the last
//     writes (then at most what they charged).
//
// An instance learns within about two seconds that another one has started, so
// an outage that begins in between finds parts that add up to more.
//
// # When not to use it
//
// A round trip to Redis costs a hundred times what a local decision does. If
// the load balancer spreads requests evenly, a local limit of a share for each
// instance is often close enough. Do not use it to protect an instance from
// overload: what it can carry depends on the instance, not on the sum; see the
// package adaptive. Do not use it as a quota that is billed: Redis may lose the
// last writes.
//
// It needs Redis 5 or later, or a server that speaks the same and runs Lua
// scripts, with memory enough for all live keys: an evicted key is a full bucket.
// If it must evict, volatile-ttl takes what would expire soonest. Keys are named
// prefix:{key}:limit; see [WithPrefix].
package distributed
