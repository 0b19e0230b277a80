// Package algotest is the conformance kit for rate limiters: the requirements on every [algo.Limiter]
// that grants units over time, for any algorithm and any place of its state.
//
// [Run] makes limiters with a constructor and tests them through the public interface, so it serves
// limiters outside this module too. Local limiters run in a testing/synctest bubble, where the clock is
// frozen between sleeps and tests can check exact instants. A limiter whose state is behind a real socket
// cannot run in a bubble: set [Bound.RealTime] to skip the checks that need a frozen clock.
//
// In-flight limits grant slots, not units: use [RunInFlight].
//
// Both compare the answers to random calls, of Acquire, Peek, Settle and Release, with a counter for each
// key. The message of a failure names the mistake and the remedy.
package algotest
