// Package sluice keeps a service inside what it can carry: rate limits per
// user, per route and in total, as net/http middleware and gRPC interceptors,
// in one process or on Redis.
//
// # The model
//
// Four things meet, and each is a package of its own:
//
//   - A limiter (package algo) decides whether n units may be spent now under a
//     key. It never sleeps, and it is one method:
//     Acquire(ctx, key, n) (Lease, error).
//   - A key function (package keyfunc) says who is limited: a client address, a
//     header, an identity from the context, a route, or several joined.
//   - An adapter (packages httpmw and grpcmw) takes the key of a request, asks
//     the limiter, sleeps a Delay out, tells the client, and releases the lease
//     when the work is over, however it ends.
//   - The lease is the answer: the decision, and the duty to release.
//
// So there is one limiter for all users, and any limiter goes with any key and
// any adapter:
//
//	users := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
//	handler = httpmw.Limit(users, keyfunc.ClientIP())(handler)
//	server := grpc.NewServer(grpcmw.ServerOptions(users, keyfunc.PeerIP())...)
//
// The client with the address 192.0.2.7 has the same key in both, and so one
// quota over both.
//
// Limiters whose state is in one process are in package algo. Package
// distributed keeps it in Redis, for all instances of a service, and goes on
// limiting when Redis is away. Package adaptive limits what is in flight.
//
// # What a decision says
//
// A denial is an answer and not an error. It has a reason: Quota, the caller
// has spent what it was given (429, RESOURCE_EXHAUSTED); Overload, the service
// cannot carry more (503, UNAVAILABLE); Never, the cost is more than the limit
// ever holds. RetryAfter is exact: then the request succeeds if nobody else
// spends in between, a nanosecond earlier it is denied.
//
// # Guarantees
//
// B is the burst, R the rate, w any window of time. Every promise names the
// test that checks it.
//
//	W1  A token bucket admits at most B + R*w units in any window, in exact
//	    integers, for any sequence of clock readings.
//	    TestBoundUnderJumpingClocks, TestClockGoingBackMintsNothing,
//	    TestTokenBucketConformance
//	W2  Every other algorithm keeps the bound that its type states.
//	    TestWindowBoundsUnderJumpingClocks, TestStrictUnderJumpingClocks,
//	    TestStartsUnderJumpingClocks, TestRampUnderJumpingClocks,
//	    TestMarkingBounds
//	W3  On Redis with the local fallback, N instances together admit at most
//	    2*(B + R*w) whatever the number and timing of outages, and B more for
//	    each key and loss of Redis' data.
//	    TestEightInstancesThroughOutages, TestFaultTable
//	W4  Several limits in one decision: all are charged or none, and RetryAfter
//	    suffices for all of them.
//	    TestAcquireAllProperty, TestAcquireAllOfEveryAlgorithm,
//	    TestAcquireAllTwoLevels, TestSeveralLevelsAreOneStep
//	U1  Arrivals that conform to the rate are never denied.
//	    TestTokenBucketConformance
//	U2  RetryAfter is exact.
//	    TestTokenBucketConformance, TestDecideAgainstArithmetic,
//	    TestExactRetryAfter, TestWindowDecisionsAreExact
//	L1  Lock-free limiters are linearizable to the pure decision.
//	    TestLinearizable, TestShapesLinearizable, TestWindowsLinearizable,
//	    TestWarmingLinearizable, TestMarkersLinearizable
//	L2  The pure decisions and the scripts on Redis agree to the bit.
//	    TestParityOfScriptAndDecide, TestParityOfWindowScripts
//	M1  A flood of keys takes no memory beyond the table.
//	    TestFloodOfKeys, TestWindowFlood
//	M2  Evicting a key never raises any key's bound.
//	    TestEvictionNeverRaisesABound, TestOverflowedKeyTakesItsDebtAlong,
//	    TestWindowEvictionIsUnobservable
//	C1  However a request ends, by panic, exit, cancellation, reset or hijack, its
//	    slot is freed.
//	    TestNoEndLeaks, TestNoHijackLeaks, TestPanicsFreeTheSlot,
//	    TestCancellationsFreeTheSlot, TestResetsFreeTheSlots
//	F1  A decision on Redis keeps its deadline, whatever Redis does.
//	    TestDecisionsKeepTheDeadline, TestTheContextsDeadlineIsKeptToo
//	F2  While Redis is away it is asked once in a probe interval.
//	    TestProbesAreFew
//	F4  The fault of one key opens no breaker.
//	    TestKeyOfAnotherTypeHurtsNobodyElse
//	S1  No two identities have the same key.
//	    TestHostileKeysAreApart, TestKeysAreInjective
//	G1  No goroutine outlives Close.
//	    TestNothingOutlivesClose
//
// # When not to use it
//
// To schedule work: a limiter says when, it does not run anything. To protect
// against a flood below HTTP: what reaches a middleware has already been
// accepted, parsed and given a goroutine.
package sluice
