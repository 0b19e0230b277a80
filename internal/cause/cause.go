// Package cause says more exactly than a reason why a limiter denied a request. It is for logs,
// operators and texts: no status or wait depends on it.
package cause

// Cause is the cause of a denial.
type Cause uint8

// The causes.
const (
	None      Cause = iota // not stated
	Limit                  // no free slot
	Keys                   // no room for one more key
	Deadline               // the time left to the request is shorter than it would take
	Queue                  // no room in the queue, or no slot within its longest wait
	Processor              // too many goroutines wait for the processor
	Latency                // the limit is low because responses take far longer than usual
	Hang                   // the limit is low because nothing completes
	Priority               // for requests of a higher class
	Share                  // for tenants within their share
	Store                  // the shared store was unavailable

	Count // of the causes
)

var names = [...]string{"", "limit", "keys", "deadline", "queue", "processor", "latency", "hang", "priority", "share", "store"}

// String returns the cause in lower case, "" if none is stated.
func (c Cause) String() string {
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}
