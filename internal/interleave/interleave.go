// Package interleave lets tests force rare schedules.
//
// A lock-free limiter calls [Point] between reading a word and swapping it.
// In production Hook is nil and Point is a load and a branch. A test sets
// Hook to something that gives the processor away, so that the window in
// which another goroutine can slip in, normally a few nanoseconds, is hit
// thousands of times a second. Stress alone almost never hits it.
package interleave

// Hook is called at every Point. Set it before the goroutines under test
// start and reset it after they have ended; it is not synchronised.
var Hook func()

// Point marks a place where another goroutine's write is interesting.
func Point() {
	if Hook != nil {
		Hook()
	}
}
