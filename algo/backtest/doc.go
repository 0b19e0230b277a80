// Package backtest finds limits in recorded traffic: what a limit would have denied, and which limit would have denied nothing.
//
//	report, err := backtest.Run(events, backtest.Config{
//		Limits: []algo.Spec{{Rate: algo.PerMinute(100), Burst: 20}},
//		Curves: []algo.Spec{{Rate: algo.PerSecond(1)}, {Rate: algo.PerSecond(10)}},
//	})
//	cover, ok := report.Curves[1].Cover(.999) // 10/s burst 45 denies nothing to 99.9 % of the keys
//
// The limiter that [algo.Spec.New] makes decides each limit alone, on the clock of the events; [adaptive.PerKey] decides limits on requests in flight, if events have durations.
//
// A curve needs no search: the smallest burst that denies nothing to a key at a rate is the highest level of a bucket that fills with each cost and drains at the rate, exact in the
// ticks of the limiter. It is the arrival curve of network calculus (R. Cruz, "A calculus for network delay", 1991; J.-Y. Le Boudec, P. Thiran, "Network Calculus", 2001).
//
// Windows begin with the first event, unless they are of the calendar, aligned or have an offset. The limit that a curve of a window suggests holds for these edges; a service that
// starts at another instant has other ones, so try several offsets, or add room. A sliding-log has no edges.
//
// Do not take it for a forecast: clients that are denied retry or stop, and the recorded ones were not. Refunds are not replayed. With a log in whole seconds a burst may be wrong
// by the units of a second of the rate: too large, since the requests of a second come at one instant, or too small, since two instants that are closer than they seem drain less.
//
// Each key's denials are exact: a sketch of the heaviest keys could not show that a limit denies nothing to a key.
//
// Memory: 32 bytes a key beside its name and the index of names, 24 more for each limit, 16 for each bucket and 8 for each window among the curves, and the tables of the limiters.
package backtest
