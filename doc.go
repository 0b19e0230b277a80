// Package sluice keeps a Go service within its capacity: rate limits per user,
// per route and in total, concurrency limits, and self-tuning ones, as net/http
// middleware and gRPC interceptors, in one process or on Redis.
//
// # Where to begin
//
//   - An HTTP service: [github.com/sluice-go/sluice/httpmw.Limit] with a limiter of package algo
//     and a key of package keyfunc, as below.
//   - A gRPC service: [github.com/sluice-go/sluice/grpcmw.ServerOptions].
//   - One limit for all instances: [github.com/sluice-go/sluice/distributed.Open].
//   - A server that gets more than it can do: [github.com/sluice-go/sluice/adaptive.New] with
//     Default.
//
// The guides in docs/guides have a page for each task; "go run ./examples/quickstart" shows
// HTTP and gRPC under one limit.
//
// # The model
//
// There are four concepts, and each is a package of its own:
//
//   - A limiter (package algo) decides whether n units may be spent now under a
//     key. It never sleeps, and it is one method:
//     Acquire(ctx, key, n) (Lease, error).
//   - A key function (packages keyfunc and rpckey) selects the limited identity:
//     a client address, a header, an identity from the context, a route, or
//     several joined.
//   - An adapter (packages httpmw and grpcmw) takes the key of a request, calls
//     the limiter, waits for a Delay, answers the client, and releases the
//     lease when the work ends, however it ends.
//   - A lease is the result: the decision, and the duty to release.
//
// One limiter therefore serves all users, and any limiter works with any key and
// any adapter:
//
//	users := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
//	handler = httpmw.Limit(users, keyfunc.ClientIP())(handler)
//	server := grpc.NewServer(grpcmw.ServerOptions(users, rpckey.PeerIP())...)
//
// The client with the address 192.0.2.7 has the same key in both, and so one
// quota over both.
//
// Limiters whose state is in one process are in package algo. Package
// distributed keeps it in Redis, for all instances of a service, and continues to
// limit while Redis is unavailable. Package adaptive limits the work in flight.
//
// # Glossary
//
//   - Unit: the counted thing: requests, tokens, bytes. The cost of a request is its units.
//   - Key: the identity whose units are counted together. One limiter holds many keys.
//   - Rate and burst: the units that come back in a time, and the most that fit at once.
//   - Debt: the units that a key has spent and that have not come back. A key without debt
//     takes no memory.
//   - Decision: admitted, perhaps with a Delay, or denied, with a Reason and RetryAfter.
//   - Lease: the decision with the duty to release it. Releasing it as canceled refunds its units.
//   - Settle: to correct the cost of a lease when the true one is known.
//   - Slot: the place that a request in flight takes until its lease is released.
//   - Policy: a limiter with its key, its cost and the name that clients see.
//   - Store: a Redis with the limits that all instances share.
//
// # Decisions
//
// A denial is a result and not an error. It has a reason:
//
//   - Quota: the caller has spent its quota (429, RESOURCE_EXHAUSTED).
//   - Overload: the service has no capacity left (503, UNAVAILABLE).
//   - Banned: the caller must stop until RetryAfter (429, RESOURCE_EXHAUSTED).
//   - Never: the cost is larger than the limit can ever admit.
//
// RetryAfter is exact: after it the request succeeds unless other requests spend
// the same key meanwhile, and a nanosecond earlier it is denied. (On Redis time is
// counted in microseconds.)
//
// # Guarantees
//
// B is the burst, R the rate, w any window of time, N the number of instances.
// The tests of a promise carry its id in their names: "go test -run W1 ./..."
// runs the tests of W1, "make long" runs all of them with their full counts, and
// "make mutants" shows which of them fail when a promise is broken on purpose.
//
// Every admission is charged to exactly one bucket, and each bucket keeps its
// own bound, so the total is at most the sum of the bounds.
//
//	W1  A token or leaky bucket admits at most B + R*w units in any window, in
//	    exact integers, for any sequence of clock readings.
//	W2  Every other algorithm keeps the bound that its type documents.
//	W3  On Redis with the local fallback, N instances with a fixed share each
//	    together admit at most B + max(B, N) + 2*R*w whatever the number and timing
//	    of outages (for costs c above a share B/N: B + N*c + 2*R*w), and none is
//	    without a share: a fresh key waits at most as long as R/N takes to pay for
//	    its cost. B more for each key and loss of Redis' data or step back of
//	    its clock. If instances count each other, and some are cut off for longer
//	    than the others remember them, they admit at most
//	    1 + (1 + 1/2 + ... + 1/N) times B + R*w.
//	W4  Several limits in one decision: all are charged or none, and RetryAfter
//	    suffices for all of them.
//	U1  Arrivals that conform to the rate, in which the time of a unit is rounded up
//	    to 1/64 ns, are never denied, as long as the clock does not go back.
//	U2  RetryAfter is exact: after it the request succeeds, a nanosecond earlier
//	    it is denied.
//	L1  Lock-free limiters are linearizable to the pure decision.
//	L2  The pure decisions and the scripts on Redis agree to the bit.
//	C1  Work in flight never exceeds the limit (one that falls is reached as work
//	    ends; a request of any cost enters alone; work that has waited for its
//	    client comes on top, but for Fixed), and its slot is freed however it ends:
//	    by panic, exit, cancellation, reset or hijack.
//	C2  An adaptive limit stays within its bounds; streams, cancellations and
//	    fast failures never change it, but AIMD's falls with failures; a failed
//	    signal is no overload, and leaves the decision to the other strategies.
//	M1  A flood of keys takes no memory beyond the table.
//	M2  The state of a key is forgotten when it has no effect any more. In a
//	    full table (1 Mi keys with debt, or MaxKeys) a new key replaces the one
//	    of 16 with the least debt: a debt is forgotten only while 15 other keys
//	    have as much. With DenyNew no debt is forgotten.
//	M3  A key on Redis expires within a second of the instant from which it has
//	    no effect; after a refund or a reset when the charges before have
//	    drained. The keys of credits stay.
//	F1  A decision on Redis keeps its deadline, whatever Redis does.
//	F2  While Redis is unavailable it is probed at most once a second.
//	F3  Two seconds after its return Redis decides again.
//	F4  The fault of one key opens no breaker.
//	S1  No two identities have the same key.
//	S2  Input from a client reaches no command, slot or reply, and no log line
//	    unquoted.
//	S3  No input panics.
//	G1  No goroutine outlives Close; local limiters have none.
//
// # When not to use it
//
//   - Scheduling: a limiter decides when work may start, it does not run it.
//   - Floods below HTTP: a request that reaches a middleware has already been
//     accepted, parsed and given a goroutine.
package sluice
