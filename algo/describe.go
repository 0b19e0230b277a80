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
)

// String returns the token that the RateLimit-Policy field uses.
func (u Unit) String() string {
	return nameOf(int(u), "requests", "concurrent-requests")
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

// Describer is implemented by limiters that have a [Description]. A [Wrapper] needs it only
// if its own differs from the description of the limiters beneath it.
type Describer interface {
	Describe() (Description, bool)
}

// Describe returns the current Description of l. It returns false if l has none. A [Wrapper]
// that is no [Describer] has the one with the smallest quota of the limiters beneath it, and of
// two equal quotas the longer window: a caller may send that much at once without being
// denied by any of them. Limiters that are Off are left out, unless all are. SetRate, SetBurst
// and [Spec.Apply] change the description.
func Describe(l Limiter) (Description, bool) {
	switch l := l.(type) {
	case Describer:
		return l.Describe()
	case Wrapper:
		return smallest(l.Unwrap())
	}
	return Description{}, false
}

func smallest(limiters []Limiter) (least Description, ok bool) {
	var shared, remote bool
	for _, l := range limiters {
		d, known := Describe(l)
		if !known || ok && d.Off && !least.Off {
			continue
		}
		if ok && least.Off && !d.Off {
			ok, shared, remote = false, false, false
		}
		shared, remote = shared || d.Shared, remote || d.Remote
		if !ok || d.Quota < least.Quota || d.Quota == least.Quota && d.Window > least.Window {
			least, ok = d, true
		}
	}
	least.Shared, least.Remote = shared, remote
	return least, ok
}
