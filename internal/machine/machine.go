// Package machine is package adaptive's view of the machine it runs on: clock,
// scheduler, processor time and chance. Limiters and strategies hold a [Machine],
// so a simulator can run them on a machine of its own.
package machine

import "time"

// Machine has the measurements that limiters and strategies need. All methods
// may be called by many goroutines at once.
type Machine interface {
	// Now is monotonic time in nanoseconds, above 0.
	Now() int64
	// Runnable is the number of goroutines that are ready to run and not
	// running; false if it is unknown.
	Runnable() (int, bool)
	// Goroutines is the number of all goroutines; false if it is unknown.
	Goroutines() (int, bool)
	// CPU is the processor time that the process has used; false if it is
	// unknown.
	CPU() (time.Duration, bool)
	// Procs is the number of goroutines that can run at once.
	Procs() int
	// Quota is the processor time per second that a control group grants the
	// process, in processors; false without a quota. It may read files.
	Quota() (float64, bool)
	// Rand is 64 random bits.
	Rand() uint64
}

// Capacity is the number of processors that the process can use: Procs, or the
// quota if that is less.
func Capacity(m Machine) float64 {
	procs := float64(m.Procs())
	if quota, limited := m.Quota(); limited {
		return min(quota, procs)
	}
	return procs
}

// Float64 is a random number in [0, 1).
func Float64(m Machine) float64 { return float64(m.Rand()>>11) / (1 << 53) }
