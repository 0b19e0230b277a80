package algo

import (
	"strconv"
	"time"
)

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

// String tells the limit in a word of letters, digits and hyphens, with the window
// in whole seconds, rounded up: "100-per-60s", "64-concurrent-requests". The
// adapters name a policy by it that has no name. A quota below 0 counts as 0.
func (d Description) String() string {
	b := strconv.AppendInt(nil, max(d.Quota, 0), 10)
	if d.Unit == ConcurrentRequests || d.Window <= 0 {
		return string(append(append(b, '-'), d.Unit.String()...))
	}
	s := int64(d.Window / time.Second)
	if d.Window%time.Second > 0 {
		s++
	}
	return string(append(strconv.AppendInt(append(b, "-per-"...), s, 10), 's'))
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
