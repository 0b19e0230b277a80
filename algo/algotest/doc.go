// Package algotest is the conformance kit for rate limiters: what every
// [algo.Limiter] that hands out units over time must do, whatever its
// algorithm and wherever its state stands.
//
// [Run] makes limiters with the constructor it is given and attacks them. It
// needs nothing but the public interface, so it serves limiters outside this
// module as well. Local limiters are run in a testing/synctest bubble, where
// time stands still until the test lets it pass; that makes exact statements
// about instants possible. A limiter whose state stands behind a real socket
// cannot live in such a bubble: set [Bound.RealTime], and the checks that need
// a standing clock are left out, by name.
//
// It is not for in-flight limits, which hand out slots and not units.
package algotest
