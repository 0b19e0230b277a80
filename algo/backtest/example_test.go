package backtest_test

import (
	"fmt"
	"iter"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/backtest"
)

// office are 200 users with a request each minute, and a script that starts 30 at once each hour.
func office(yield func(backtest.Event) bool) {
	morning := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	for minute := range 120 {
		now := morning.Add(time.Duration(minute) * time.Minute)
		if minute%60 == 0 {
			for range 30 {
				if !yield(backtest.Event{At: now, Key: "script", Cost: 1}) {
					return
				}
			}
		}
		for user := range 200 {
			if !yield(backtest.Event{At: now, Key: fmt.Sprint("user ", user), Cost: 1}) {
				return
			}
		}
	}
}

func ExampleRun() {
	var events iter.Seq[backtest.Event] = office
	report, err := backtest.Run(events, backtest.Config{
		Limits: []algo.Spec{{Rate: algo.PerMinute(60), Burst: 10}},
		Curves: []algo.Spec{{Rate: algo.PerSecond(1)}, {Rate: algo.PerMinute(1)}},
	})
	if err != nil {
		panic(err)
	}
	limit := report.Limits[0]
	fmt.Printf("%v denies %d of %d requests, and %d of %d keys: %s\n",
		limit.Spec, limit.Denied, report.Requests, len(limit.Keys), report.Keys, limit.Keys[0].Name)
	for _, curve := range report.Curves {
		most, _ := curve.Cover(.99)
		all, _ := curve.Cover(1)
		fmt.Printf("%v covers 99 %% of the keys, %v all\n", most.Spec, all.Spec)
	}
	// Output:
	// 60/min burst 10 denies 40 of 24060 requests, and 1 of 201 keys: script
	// 1/s burst 1 covers 99 % of the keys, 1/s burst 30 all
	// 1/min burst 1 covers 99 % of the keys, 1/min burst 30 all
}

func ExampleReplay() {
	replay, err := backtest.New(backtest.Config{Limits: []algo.Spec{{Rate: algo.PerSecond(1), Burst: 2}}})
	if err != nil {
		panic(err)
	}
	noon := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for i := range 3 {
		decisions, err := replay.Add(backtest.Event{At: noon.Add(time.Duration(i) * 100 * time.Millisecond), Key: "alice", Cost: 1})
		if err != nil {
			panic(err)
		}
		fmt.Println(decisions[0].Allowed, decisions[0].RetryAfter)
	}
	for _, key := range replay.Report().Limits[0].Keys {
		fmt.Println(key.Name, "was denied", key.Denied, "of", key.Requests, "requests, and locked out for", key.LockedOut)
	}
	// Output:
	// true 0s
	// true 0s
	// false 800ms
	// alice was denied 1 of 3 requests, and locked out for 800ms
}
