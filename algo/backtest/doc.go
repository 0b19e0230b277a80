// Package backtest finds limits in recorded traffic: what a limit would have denied, and which
// limit would have denied nothing.
//
//	report, err := backtest.Run(events, backtest.Config{
//		Limits: []algo.Spec{{Rate: algo.PerMinute(100), Burst: 20}},
//		Curves: []algo.Spec{{Rate: algo.PerSecond(1)}, {Rate: algo.PerSecond(10)}},
//	})
//	cover, ok := report.Curves[1].Cover(.999) // 10/s burst 45 denies nothing to 99.9 % of the keys
//
// A limit is decided by the limiter that [algo.Spec.New] makes, on the clock of the events, each
// limit by itself. A curve needs no search: the smallest burst that denies nothing to a key at a rate
// is the highest level of a bucket that fills with each cost and drains at the rate, exact in the
// ticks of the limiter. It is the arrival curve of network calculus (R. Cruz, "A calculus for
// network delay", 1991; J.-Y. Le Boudec, P. Thiran, "Network Calculus", 2001).
//
// Do not take it for a forecast: clients that are denied retry or stop, and the recorded ones were
// not. Refunds are not replayed. A log with whole seconds puts the requests of a second into one
// instant, so that its bursts are too large by up to the units of a second.
//
// Memory: 32 bytes a key beside its name and the index of names, 16 more for each bucket and 8 for
// each window among the curves, the tables of the limiters, and about 100 bytes for each key that a
// limit denies.
package backtest
