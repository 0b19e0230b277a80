package main

import (
	"runtime"
	"time"
)

// spin is a fixed amount of work, not of time: a handler that waited for the
// clock would be as fast on a busy processor as on an idle one.
func spin(steps int) {
	x := uint64(88172645463325252)
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	runtime.KeepAlive(x) // and so the loop
}

// stepsOf is the work that takes that long here: by the fastest of some trials,
// the one that nothing else interrupted.
func stepsOf(d time.Duration) int {
	const steps = 500_000
	best := time.Hour
	for range 20 {
		start := time.Now()
		spin(steps)
		best = min(best, time.Since(start))
	}
	return int(steps * d.Seconds() / best.Seconds())
}
