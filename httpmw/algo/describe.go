package algo

import "time"

// Unit is what a limit counts.
type Unit uint8

// The units, named as in the RateLimit-Policy header field.
const (
	// Requests is the default unit: cost units spent over time.
	Requests Unit = iota
	// ConcurrentRequests counts what is in flight; it has no window.
	ConcurrentRequests
)

// String returns the token that the RateLimit-Policy field uses.
func (u Unit) String() string { return nameOf(int(u), "requests", "concurrent-requests") }

// Description is what a limit promises its callers, as header fields need it:
// Quota units in each Window. A token bucket's quota is its burst and its
// window the time that the bucket takes to fill.
type Description struct {
	Quota  int64
	Window time.Duration // 0 where time plays no part
	Unit   Unit
}

// Describer is implemented by limiters that can say what they promise.
// A wrapper forwards to what it wraps and answers false if that cannot.
type Describer interface {
	Describe() (Description, bool)
}

// Describe returns what l promises now, false if l cannot tell (a limiter
// that chooses among others by key, for one). The answer changes with SetRate.
func Describe(l Limiter) (Description, bool) {
	if d, ok := l.(Describer); ok {
		return d.Describe()
	}
	return Description{}, false
}
