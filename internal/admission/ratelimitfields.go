package admission

import (
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// Fields renders the items of RateLimit-Policy and RateLimit
// (draft-ietf-httpapi-ratelimit-headers-11, RFC 9651) for one limiter.
type Fields struct {
	Limiter algo.Limiter
	about   algo.Describer // of Limiter
	name    string
	prefix  string // of the RateLimit item: `"name";r=`
	item    atomic.Pointer[PolicyItem]
}

func newFields(name string, l algo.Limiter) Fields {
	about, ok := l.(algo.Describer)
	if !ok {
		about = described{l}
	}
	return Fields{Limiter: l, about: about, name: name, prefix: `"` + name + `";r=`}
}

// described is a limiter that does not describe itself.
type described struct{ algo.Limiter }

func (d described) About() algo.Description { return algo.About(d.Limiter) }

// PolicyItem is the rendered item of RateLimit-Policy for one limit in force.
type PolicyItem struct {
	Text      string
	Described bool // by the limiter; otherwise the quota is the Limit of a decision
	quota     int64
	window    time.Duration
	unit      algo.Unit
	usual     [2]texts // of a key that has spent one unit of a full bucket, and of one that has spent all
}

// texts are the rendered fields of a key.
type texts struct {
	remaining, until, reset int64
	item                    string    // of RateLimit
	legacy                  [3]string // the fields without a standard
}

// PolicyItem returns the item for a decision with the given limit. It is
// rendered again when the limit changes.
func (f *Fields) PolicyItem(limit int64) *PolicyItem {
	d := f.about.About()
	ok := d.Quota != 0
	if !ok {
		d.Quota = limit
	}
	if p := f.item.Load(); p != nil && p.quota == d.Quota && p.window == d.Window && p.unit == d.Unit && p.Described == ok {
		return p
	}
	p := &PolicyItem{Text: f.renderPolicy(d), Described: ok, quota: d.Quota, window: d.Window, unit: d.Unit}
	until := Seconds(d.Window / time.Duration(max(d.Quota, 1)))
	p.usual = [2]texts{f.render(d.Quota, d.Quota-1, until, until), f.render(d.Quota, 0, until, Seconds(d.Window))}
	f.item.Store(p)
	return p
}

func (f *Fields) render(limit, remaining, until, reset int64) texts {
	return texts{remaining, until, reset, string(f.appendItem(nil, remaining, until)), renderLegacy(limit, remaining, reset)}
}

// renderPolicy: q is the quota, w the window in seconds, qu the unit if it is
// not the default. Clients take q/w for the rate.
func (f *Fields) renderPolicy(d algo.Description) string {
	b := append([]byte{'"'}, f.name...)
	quota, seconds := inSeconds(d)
	b = AppendNumber(append(b, `";q=`...), quota)
	if d.Unit != algo.Requests {
		b = append(append(append(b, `;qu="`...), d.Unit.String()...), '"')
	}
	if seconds > 0 {
		b = AppendNumber(append(b, ";w="...), seconds)
	}
	return string(b)
}

// inSeconds returns a quota for a window of whole seconds: the limit's own if its window is about
// that long, otherwise its rate, so that 5 units in 100 ms become 50 in 1 s. seconds is 0 if neither
// is within 10 % of the true rate.
func inSeconds(d algo.Description) (quota, seconds int64) {
	const tolerance = .099
	if d.Window <= 0 || d.Quota <= 0 || d.Unit == algo.ConcurrentRequests {
		return d.Quota, 0
	}
	seconds = max(int64(math.Round(d.Window.Seconds())), 1)
	if math.Abs(float64(seconds)/d.Window.Seconds()-1) <= tolerance {
		return d.Quota, seconds
	}
	seconds = Seconds(d.Window)
	rate := float64(d.Quota) / d.Window.Seconds()
	quota = int64(math.Round(rate * float64(seconds)))
	if math.Abs(float64(quota)/float64(seconds)/rate-1) <= tolerance {
		return quota, seconds
	}
	return d.Quota, 0
}

// AppendLimit appends the item of RateLimit: r is the remaining units, at most the q of
// the policy (one key may have a larger limit), t the seconds until more is available,
// rounded up. It omits t if nothing is spent, for limits in flight, and if t is unknown.
func (f *Fields) AppendLimit(b []byte, d *algo.Decision, p *PolicyItem) []byte {
	return f.appendItem(b, min(d.Remaining, p.quota), p.Until(d))
}

func (f *Fields) appendItem(b []byte, remaining, t int64) []byte {
	b = AppendNumber(append(b, f.prefix...), remaining)
	if t > 0 {
		b = AppendNumber(append(b, ";t="...), t)
	}
	return b
}

// LimitItem returns the item that AppendLimit appends.
func (f *Fields) LimitItem(d *algo.Decision, p *PolicyItem) string {
	t := p.Until(d)
	for i := range p.usual {
		if u := &p.usual[i]; d.Remaining == u.remaining && t == u.until {
			return u.item
		}
	}
	var buf [128]byte // a name of 64 and two numbers of 15 fit
	return string(f.appendItem(buf[:0], min(d.Remaining, p.quota), t))
}

// LegacyItems returns the texts of the fields without a standard: limit, remaining and reset.
func (f *Fields) LegacyItems(d *algo.Decision, reset int64) [3]string {
	p := f.PolicyItem(d.Limit)
	for i := range p.usual {
		if u := &p.usual[i]; d.Limit == p.quota && d.Remaining == u.remaining && reset == u.reset {
			return u.legacy
		}
	}
	return renderLegacy(d.Limit, min(d.Remaining, d.Limit), reset)
}

func renderLegacy(limit, remaining, reset int64) [3]string {
	var buf [3 * 20]byte
	b := AppendNumber(buf[:0], limit)
	i := len(b)
	b = AppendNumber(b, remaining)
	j := len(b)
	text := string(AppendNumber(b, reset))
	return [3]string{text[:i], text[i:j], text[j:]}
}

// Until returns the t of a RateLimit item; 0 if it has none. A limiter that delays
// may admit a denied request before anything could start at once: then more is
// available.
func (p *PolicyItem) Until(d *algo.Decision) int64 {
	if p.unit == algo.ConcurrentRequests || d.Remaining >= p.quota {
		return 0
	}
	after := d.NextAfter
	if !d.Allowed {
		after = min(after, waitFor(d))
	}
	if after == algo.Forever {
		return 0
	}
	return max(Seconds(after), 0)
}

// unbounded is the limit of an adaptive limiter that enforces none. It may still
// deny because of the processor's run queue.
const unbounded = math.MaxInt32

// InForce reports whether d is about a limit that applied to the request and is enforced. Other
// limits must not be advertised, or well-behaved clients would back off.
func (f *Fields) InForce(d *algo.Decision) bool {
	return d.InForce() && (d.Limit != unbounded || !f.countsInFlight())
}

// countsInFlight reports whether the limit counts units in flight; true without a description.
func (f *Fields) countsInFlight() bool { return f.about.About().NeedsRelease }

// maxNumber is the largest integer of a structured field (RFC 9651 section
// 3.3.1).
const maxNumber = 999_999_999_999_999

// AppendNumber appends n, clamped to the range of a structured field.
func AppendNumber(b []byte, n int64) []byte {
	return strconv.AppendInt(b, min(max(n, 0), maxNumber), 10)
}
