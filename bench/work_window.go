package main

import (
	"context"
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/sluice-go/sluice/algo"
)

// slidingWindows are windows of an hour of two counters, from which everything
// is admitted.
func slidingWindows() []contender {
	window := algo.Must(algo.NewSlidingWindow(algo.PerHour(huge)))
	theirs, _ := slidingwindow.NewLimiter(time.Hour, huge, func() (slidingwindow.Window, slidingwindow.StopFunc) {
		return slidingwindow.NewLocalWindow()
	})
	ctx := context.Background()
	return []contender{
		{"floor: clock, swap", floor, clockFloor()},
		{"sluice Allow", ours, again(func() bool { return window.Allow("", 1) })},
		{"sluice Acquire and Release", ours, again(func() bool {
			lease, err := algo.Limiter(window).Acquire(ctx, "", 1)
			lease.Release(algo.Succeeded)
			return err == nil && lease.Allowed
		})},
		{"RussellLuo slidingwindow", peer, again(theirs.Allow)},
	}
}
