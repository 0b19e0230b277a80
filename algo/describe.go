package algo

import (
	"strconv"
	"time"
)

// Unit is the unit that a limit counts.
type Unit uint8

// The units, named as in the RateLimit-Policy header field.
const (
	// Requests counts cost units spent over time. It is the default.
	Requests Unit = iota
	// ConcurrentRequests counts requests in flight; it has no window.
	ConcurrentRequests
	// ContentBytes counts bytes of content over time. Limiters describe them as
	// Requests; the policy of an adapter says that its costs are bytes.
	ContentBytes
)

// String returns the token that the RateLimit-Policy field uses.
func (u Unit) String() string {
	return nameOf(int(u), "requests", "concurrent-requests", "content-bytes")
}

// Description is a limit in the terms of the RateLimit-Policy header field:
// Quota units in each Window. The quota of a token bucket is its burst, its
// window the time in which the bucket fills.
type Description struct {
	Quota  int64
	Window time.Duration // 0 for limits on requests in flight
	Unit   Unit
	// Shared: all keys have one limit in common, so that a denial says nothing about
	// the key.
	Shared bool
	// Off: the limit denies nothing now, because it is on trial or switched off.
	Off bool
	// Remote: a look costs a round trip.
	Remote bool
}

// String returns the limit as a word of letters, digits and hyphens, with the
// window in whole seconds, rounded up: "100-per-60s", "64-concurrent-requests".
// The adapters use it as the name of a policy that has none. A quota below 0
// counts as 0.
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

// Describer is implemented by limiters that have a [Description]. A wrapper
// forwards to the limiter it wraps, and returns false if that limiter has none.
type Describer interface {
	Describe() (Description, bool)
}

// Describe returns the current Description of l. It returns false if l has
// none, as a limiter has that selects others by key. SetRate, SetBurst and
// [Spec.Apply] change it.
func Describe(l Limiter) (Description, bool) {
	if d, ok := l.(Describer); ok {
		return d.Describe()
	}
	return Description{}, false
}
