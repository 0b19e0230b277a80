// Package machine is what package adaptive can know of the machine that it runs
// on, in one place, so that the simulator can stand in for it.
package machine

import "time"

// Machine answers what strategies ask. All methods are called from many
// goroutines at once.
type Machine interface {
	// Now is monotonic time in nanoseconds, above 0.
	Now() int64
	// Runnable is how many goroutines are ready to run and do not; false if
	// that cannot be known.
	Runnable() (int, bool)
	// CPU is the processor time that the process has used; false if that
	// cannot be known.
	CPU() (time.Duration, bool)
	// Procs is how many goroutines can run at once.
	Procs() int
	// Quota is how many processors' worth of time a control group lets the
	// process use; false if it is not limited.
	Quota() (float64, bool)
	// Rand is a random number, all of its bits.
	Rand() uint64
}

// simulated stands in for the real machine if it is set.
var simulated Machine

// Simulate puts m in the place of the real machine, for the whole process, and
// nil takes it away again. It must not be called while anything asks.
func Simulate(m Machine) { simulated = m }
