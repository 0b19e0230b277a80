package algo

import "time"

// Limiters count time in ticks of 1/64 ns since they were made. That lasts for
// 4.5 years; then they deny what they cannot charge any more.
//
// Whole nanoseconds would be too coarse: 600e6 units a second cost 1.67 ns
// each, and truncating that to 1 runs 67 % too fast.
const (
	tickShift    = 6
	ticksPerNano = 1 << tickShift

	// maxSpan bounds the time that a limit may look ahead: burst * period /
	// count + MaxWait. It leaves room for a process that runs for more than a
	// year without any sum overflowing.
	maxSpan = 365 * 24 * time.Hour
)

// clock reads monotonic time. The start is a field, not a package variable,
// so that testing/synctest can replace time for a limiter made in its bubble.
type clock struct{ start time.Time }

// startClock begins one nanosecond ago: 0 stands for "never used" in state
// words, so a reading must be above it.
func startClock() clock { return clock{time.Now().Add(-time.Nanosecond)} }

// now is the time since the start in ticks. It costs about 25 ns, most of a
// decision, so a decision reads it once.
func (c clock) now() int64 { return toTicks(time.Since(c.start)) }

// toTicks converts, saturating at the largest duration that ticks can hold.
func toTicks(d time.Duration) int64 {
	const most = 1<<(63-tickShift) - 1
	return int64(min(d, most)) << tickShift
}

// toDuration rounds up: a caller that waits for the result is never early.
func toDuration(ticks int64) time.Duration {
	return time.Duration((ticks + ticksPerNano - 1) >> tickShift)
}
