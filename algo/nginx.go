package algo

import (
	"fmt"

	"github.com/sluice-go/sluice/internal/decide"
)

// Nginx decides as nginx's limit_req does:
//
//	limit_req zone=... rate=2r/s burst=5 [delay=n | nodelay];
//
// Requests at the rate are admitted without an excess; Burst units may come in
// excess of it. Up to [DelayAfter] of them start at once, the others are
// admitted with a Delay that spaces them at the rate, and requests beyond
// Burst are denied. Only admissions are charged. As in nginx the first request
// of an idle key is no excess yet, so Burst + 1 fit at once: at 2 a second
// with burst 5, seven requests at one instant get delays of 0, 0.5, 1, 1.5, 2
// and 2.5 s and one denial.
//
// nginx counts in thousandths of a request and whole milliseconds; this type
// counts in 1/64 ns, so a Delay may differ by up to 1 ms from nginx's.
//
// Bound: in any window of length w at most Burst + 1 + rate*w units are
// admitted, and with delays at most DelayAfter + 1 + rate*w start (n + rate*w
// if the largest cost n is more), for any clock readings and any number of
// goroutines, and both with delays as long as no admission is canceled or
// settled to less while later ones wait. RetryAfter is exact.
//
// Remaining is the number of units that could start at once, Limit is
// DelayAfter + 1, or Burst + 1 with [NoDelay].
//
// Source: the documentation of ngx_http_limit_req_module.
//
// Do not use it for new limits that need not behave as an nginx in front of
// them does: a [TokenBucket] with MaxWait says the same in plainer terms.
type Nginx struct {
	keyed[int64, struct{}]
	rated[int64, struct{}]
}

// NewNginx makes a limiter with the options [Burst] (the units in excess of
// the rate, 0 or more; the default is 0 here, as in nginx), [DelayAfter] or
// [NoDelay], [MaxKeys] and [DenyNew]. The error names the field and the value
// that no limit can keep.
func NewNginx(r Rate, opts ...Option) (*Nginx, error) {
	return construct(&nginx, Spec{Rate: r}, opts, newNginx)
}

var nginx = kind{"nginx", "nginx", []string{"Burst", "DelayAfter", "NoDelay", "MaxKeys", "DenyNew"}}

func newNginx(s Spec) (*Nginx, error) {
	l := new(Nginx)
	if err := initBucket(&l.keyed, &l.rated, &nginx, s, limitReq); err != nil {
		return nil, err
	}
	return l, nil
}

// limitReq makes a bucket of DelayAfter + 1 units, and a queue for the rest of
// Burst.
func limitReq(s Spec, _ Rate) (*decide.GCRA, error) {
	after := s.DelayAfter
	if s.NoDelay {
		after = max(s.Burst, 0)
	}
	if s.NoDelay && s.Given("delay") {
		return nil, fmt.Errorf("delay after is %d, and NoDelay is given: want one of them", s.DelayAfter)
	}
	return decide.NewNginx(s.Rate.local(), s.Burst, after)
}

// SetBurst changes the burst while the limiter runs. Keys keep their spent
// units. After the burst is raised no key waits longer than one that has just
// spent all of it.
func (l *Nginx) SetBurst(n int64) error { return l.setBurst(n) }
