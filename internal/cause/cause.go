// Package cause says more exactly than a reason why a limiter denied a request. It is for logs,
// operators and texts: no status or wait depends on it.
package cause

// Cause is the cause of a denial.
type Cause uint8

// The causes; package algo explains them.
const (
	None Cause = iota
	Limit
	Keys
	Deadline
	Queue
	Processor
	Latency
	Hang
	Priority
	Share
	Store

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
