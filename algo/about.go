package algo

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/decide"
)

// Unit is what a limit counts.
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

// Description describes a limit in the terms of the RateLimit-Policy header field: Quota units in
// each Window. The quota of a token bucket is its burst, its window the time in which the bucket
// fills.
type Description struct {
	Rate   Rate          // of a limit over time, if stated
	Quota  int64         // 0: unstated
	Window time.Duration // 0 for limits on requests in flight
	Unit   Unit
	// Shared reports that all keys have one limit in common, so that a denial says nothing about a
	// key.
	Shared bool
	// NeedsRelease reports that a lease may hold a slot, or its outcome decides the charge: call
	// Release when the work ends. It never changes.
	NeedsRelease bool
	// Off reports that the limit currently denies nothing, because it is on trial or switched off.
	Off bool
	// Remote reports that a peek costs a round trip.
	Remote bool
}

// String returns the limit as a word of letters, digits, dots and hyphens: "10-per-second",
// "10-per-second-burst-20", "5-per-15m", "64-concurrent-requests"; "default" without a Quota. The
// adapters name policies without a name by it.
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

// Describer is implemented by limiters that have a [Description]. A [Wrapper] needs it only if it
// differs from the limiters beneath it.
type Describer interface {
	About() Description
}

// About returns the current Description of l. For a [Wrapper] that is no [Describer] it is that of
// the limiter beneath with the smallest quota, with equal quotas the longest window: a caller may
// send that much at once without a denial. It skips limiters that are Off, unless all are.
// NeedsRelease, Shared and Remote are true if one of them has it, NeedsRelease also if that one is
// Off. For any other limiter only NeedsRelease is true.
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

// less reports whether d, not o, describes both.
func (d *Description) less(o *Description) bool {
	switch {
	case d.Quota == 0 || o.Quota == 0:
		return d.Quota > 0
	case d.Quota != o.Quota:
		return d.Quota < o.Quota
	}
	return d.Window > o.Window
}
