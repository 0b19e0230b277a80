// Package sluice keeps a service inside what it can carry: rate limits per
// user, per route and in total, limits on what is in flight, and adaptive ones,
// as net/http middleware and gRPC interceptors, in one process or on Redis.
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
//	server := grpc.NewServer(grpcmw.ServerOptions(users, rpckey.PeerIP())...)
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
// B is the burst, R the rate, w any window of time, N the number of instances.
// Every promise names the tests that check it: go run ./internal/promises runs
// them with their full counts, and go run ./internal/mutants shows which of
// them notice when a promise is broken on purpose.
//
// Every admission is charged to exactly one bucket, and each bucket keeps its
// own bound, so the total is at most the sum of the bounds.
//
//	W1  A token or leaky bucket admits at most B + R*w units in any window, in
//	    exact integers, for any sequence of clock readings.
//	    TestBoundUnderJumpingClocks, TestClockGoingBackMintsNothing,
//	    TestLateRefundMintsNothing, TestRefundsCountOneAnother,
//	    TestBucketRefundsMintNothing, TestShapeRefundsMintNothing,
//	    TestTokenBucketConformance, TestLeakyBucketConformance
//	W2  Every other algorithm keeps the bound that its type states.
//	    TestWindowBoundsUnderJumpingClocks, TestStrictUnderJumpingClocks,
//	    TestStartsUnderJumpingClocks, TestRampUnderJumpingClocks,
//	    TestMarkingAgainstTheRFCs, TestMarkingBounds,
//	    TestWindowRefundsMintNothing, TestWindowRefundKeepsTheTime,
//	    TestWindowRefundsAtChangingRates, TestWindowAdoptsAtAFreshReading,
//	    TestShapeRefundsMintNothing, TestWaitRefundsMintNothing,
//	    TestMarkerRefundsMintNothing, TestWarmingRefundsMintNothing
//	W3  On Redis with the local fallback, N instances that know their number
//	    together admit at most 2*(B + R*w) whatever the number and timing of
//	    outages, and B more for each key and loss of Redis' data. Those that
//	    count each other, some of which are cut off for so long that the others
//	    count them no more, admit at most 1 + (1 + 1/2 + ... + 1/N) times
//	    B + R*w.
//	    TestVirtualDaysOfOutages, TestVirtualDaysOfCountedInstances,
//	    TestEightInstancesThroughOutages, TestFaultTable,
//	    TestPartsOfTheFleetAddUpToTheLimit,
//	    TestCountThatFallsIsNotBelievedAtOnce
//	W4  Several limits in one decision: all are charged or none, and RetryAfter
//	    suffices for all of them.
//	    TestAcquireAllProperty, TestAcquireAllOfEveryAlgorithm,
//	    TestAcquireAllTwoLevels, TestSeveralLevelsAreOneStep,
//	    TestCompositionsMintNothing
//	U1  Arrivals that conform to the rate are never denied, as long as the clock
//	    goes on.
//	    TestTokenBucketConformance, TestLeakyBucketConformance
//	U2  RetryAfter is exact: then it succeeds, a nanosecond earlier it fails.
//	    TestDecideAgainstArithmetic, TestExactRetryAfter,
//	    TestWindowDecisionsAreExact, TestTokenBucketConformance
//	L1  Lock-free limiters are linearizable to the pure decision.
//	    TestLinearizable, TestShapesLinearizable, TestWindowsLinearizable,
//	    TestWarmingLinearizable, TestMarkersLinearizable
//	L2  The pure decisions and the scripts on Redis agree to the bit.
//	    TestParityOfScriptAndDecide, TestParityOfWindowScripts
//	C1  Never more in flight than the limit, and however work ends, by panic,
//	    exit, cancellation, reset or hijack, its slot is freed.
//	    TestNeverAboveTheLimit, TestNothingLeaks, TestNoEndLeaks,
//	    TestNoEndLeaksInProcess, TestNoHijackLeaks, TestPanicsFreeTheSlot,
//	    TestGoexitFreesTheSlot, TestCancellationsFreeTheSlot,
//	    TestResetsFreeTheSlots, TestInFlightNeverExceedsTheLimit
//	C2  An adaptive limit stays within its bounds; streams, cancellations and
//	    fast failures never teach it; a signal that fails is no overload, and
//	    leaves the decision to the other strategies.
//	    TestLearnersStayWithinLimits, TestLimitsBoundTheStrategy,
//	    TestBBRKeepsItsLimits, TestWhatTeaches, TestFastErrorsDoNotTeach,
//	    TestOverloadIsNotTheNormalState, TestOutcomes, TestStreamsAreIgnored,
//	    TestFailedSignal, TestMin
//	M1  A flood of keys takes no memory beyond the table.
//	    TestFloodOfKeys, TestWindowFlood, TestPerKeyForgets
//	M2  Evicting a key never raises any key's bound.
//	    TestEvictionNeverRaisesABound, TestNewcomerIsDecidedOnAFreshReading,
//	    TestSwapOfASlotThatChangedHands, TestOverflowedKeyTakesItsDebtAlong,
//	    TestWindowEvictionIsUnobservable
//	M3  A key on Redis expires within a second of the instant from which it
//	    means nothing; one that was given back to, with its window.
//	    TestNoKeyOutlivesItsMeaning, TestFaultTable
//	F1  A decision on Redis keeps its deadline, whatever Redis does.
//	    TestVirtualDaysOfOutages, TestDecisionsKeepTheDeadline,
//	    TestTheContextsDeadlineIsKeptToo, TestContextEndsTheWait
//	F2  While Redis is away it is asked once in a probe interval.
//	    TestVirtualDaysOfOutages, TestProbesAreFew
//	F3  Two probe intervals after its return Redis decides again.
//	    TestVirtualDaysOfOutages, TestBreakerOpensProbesAndRamps
//	F4  The fault of one key opens no breaker.
//	    TestKeyOfAnotherTypeHurtsNobodyElse, TestKeyOfAnotherTypeInABatch,
//	    TestWrongTypeOpensNoBreaker, TestFaultTable
//	S1  No two identities have the same key.
//	    TestHostileKeysAreApart, TestKeysAreInjective,
//	    TestS1_JoinCanBeReadBack, FuzzS1_Join, FuzzKey, FuzzS1_Header,
//	    FuzzS1_ClientIsNeverTrusted, FuzzS1_UntrustedPeer
//	S2  What a client sends reaches no command, slot or reply, and no log line
//	    unquoted.
//	    TestHostileKeysAreApart, TestSlotIsTheServersOwn, TestNothingIsEchoed,
//	    TestHostileMetadata, TestAnswersAreAClosedSet,
//	    TestHostileKeysStayOutOfTheLog, FuzzKey
//	S3  No input panics.
//	    TestHostileLimiter, TestHostileMethods, TestClassOutOfRangeIsClamped,
//	    FuzzDecide, FuzzShapes, FuzzRamp, FuzzMarking, FuzzWindowDecide,
//	    FuzzParse, FuzzRestore, FuzzS3_Forwarded, FuzzS3_ParseAddress
//	G1  No goroutine outlives Close; local limiters have none.
//	    TestNothingOutlivesClose, TestNewNeedsNoRedisAndStartsNothing
//
// # When not to use it
//
// To schedule work: a limiter says when, it does not run anything. To protect
// against a flood below HTTP: what reaches a middleware has already been
// accepted, parsed and given a goroutine.
package sluice
