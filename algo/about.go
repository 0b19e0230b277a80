package algo

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/decide"
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
	Rate   Rate          // of a limit over time, if it is stated
	Quota  int64         // 0: none is stated
	Window time.Duration // 0 for limits on requests in flight
	Unit   Unit
	// Shared: all keys have one limit in common, so that a denial says nothing about
	// the key.
	Shared bool
	// NeedsRelease: a lease may hold a slot, or its outcome decides the charge, so that
	// Release has to come when the work ends. It never changes.
	NeedsRelease bool
	// Off: the limit denies nothing now, because it is on trial or switched off.
	Off bool
	// Remote: a look costs a round trip.
	Remote bool
}

// String returns the limit as a word of letters, digits, dots and hyphens: "10-per-second",
// "10-per-second-burst-20", "5-per-15m", "64-concurrent-requests"; "default" without a Quota.
// The adapters use it as the name of a policy that has none.
func (d Description) String() string {
	r := d.Rate
	if r == (Rate{}) {
		r = Rate{d.Quota, d.Window}
	}
	switch {
	case d.Quota <= 0:
		return "default"
	case d.Unit == ConcurrentRequests || r.Period <= 0:
		return strconv.FormatInt(d.Quota, 10) + "-" + d.Unit.String()
	}
	name := strconv.FormatInt(r.Count, 10) + "-per-" + periodName(r.Period)
	if d.Quota != r.Count {
		name += "-burst-" + strconv.FormatInt(d.Quota, 10)
	}
	return name
}

func periodName(d time.Duration) string {
	for _, p := range decide.Periods {
		if p.Length == d {
			return p.Long
		}
	}
	name := strings.Replace(d.String(), "\u00b5", "u", 1)
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(name, zero) {
			name = name[:len(name)-2]
		}
	}
	return name
}

// Describer is implemented by limiters that have a [Description]. A [Wrapper] needs it only
// if its own differs from the description of the limiters beneath it.
type Describer interface {
	About() Description
}

// About returns the current Description of l. A [Wrapper] that is no [Describer] has the one
// with the smallest quota of the limiters beneath it, and of two equal quotas the longer
// window: a caller may send that much at once without being denied by any of them. Limiters
// that are Off are left out, unless all are. NeedsRelease, Shared and Remote are true if they
// are for one of them, NeedsRelease for one that is Off too. Any other limiter has a
// Description with NeedsRelease only.
//
// SetRate, SetBurst and [Spec.Apply] change the description.
func About(l Limiter) Description {
	switch l := l.(type) {
	case Describer:
		return l.About()
	case Wrapper:
		if inner := l.Unwrap(); len(inner) > 0 {
			return smallest(inner)
		}
	}
	return Description{NeedsRelease: true}
}

func smallest(limiters []Limiter) Description {
	least := About(limiters[0])
	for _, l := range limiters[1:] {
		d := About(l)
		release := least.NeedsRelease || d.NeedsRelease
		switch {
		case least.Off && !d.Off:
			least = d
		case least.Off == d.Off:
			shared, remote := least.Shared || d.Shared, least.Remote || d.Remote
			if d.less(&least) {
				least = d
			}
			least.Shared, least.Remote = shared, remote
		}
		least.NeedsRelease = release
	}
	return least
}

// less reports whether d rather than o describes both.
func (d *Description) less(o *Description) bool {
	switch {
	case d.Quota == 0 || o.Quota == 0:
		return d.Quota > 0
	case d.Quota != o.Quota:
		return d.Quota < o.Quota
	}
	return d.Window > o.Window
}
