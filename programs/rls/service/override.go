package service

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// mostOverrides is the number of different limits from requests that are kept, in addition to
// the limits of running requests. When there are more, the oldest one is dropped. Its counts
// on Redis stay.
const mostOverrides = 1024

// overrides are the limits that requests state themselves, one limiter for
// each rate.
type overrides struct {
	store *distributed.Store
	mu    sync.Mutex
	made  map[algo.Rate]*override
	order []algo.Rate
}

// override is a limit that requests have brought along.
type override struct {
	limit
	users int  // descriptors of requests under way
	gone  bool // no further request gets it
}

func newOverrides(store *distributed.Store) *overrides {
	return &overrides{store: store, made: map[algo.Rate]*override{}}
}

const day = 24 * time.Hour

// periods of the units. A month has 30 days and a year 365.
var periods = map[envoytype.RateLimitUnit]time.Duration{
	envoytype.RateLimitUnit_SECOND: time.Second,
	envoytype.RateLimitUnit_MINUTE: time.Minute,
	envoytype.RateLimitUnit_HOUR:   time.Hour,
	envoytype.RateLimitUnit_DAY:    day,
	envoytype.RateLimitUnit_MONTH:  30 * day,
	envoytype.RateLimitUnit_YEAR:   365 * day,
}

// get returns the limit that a request brings along, until done. A limit that is faster than
// the clock has steps counts as the fastest, because Envoy lets a request pass when its call
// fails.
func (o *overrides) get(want *ratelimit.RateLimitDescriptor_RateLimitOverride) (*override, error) {
	period, ok := periods[want.GetUnit()]
	if !ok {
		return nil, fmt.Errorf("limit: unit is %s, want one from SECOND to YEAR", want.GetUnit())
	}
	step := time.Nanosecond
	if o.store != nil {
		step = time.Microsecond
	}
	rate := algo.Per(min(int64(want.GetRequestsPerUnit()), int64(period/step)), period)
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.made[rate]; l != nil {
		l.users++
		return l, nil
	}
	l := &override{users: 1}
	l.limit = limit{rate: rate, name: fmt.Sprintf("override-%d-per-%s", rate.Count, strings.ToLower(want.GetUnit().String()))}
	var err error
	if l.limiter, err = o.make(l.name, rate); err != nil {
		return nil, fmt.Errorf("limit: %w", err)
	}
	l.counts = l.limiter
	if len(o.order) == mostOverrides {
		o.forget(o.order[0])
		o.order = o.order[1:]
	}
	o.made[rate], o.order = l, append(o.order, rate)
	return l, nil
}

// forget lets a limit go. The caller holds o.mu.
func (o *overrides) forget(rate algo.Rate) {
	l := o.made[rate]
	l.gone = true
	l.close()
	delete(o.made, rate)
}

// done ends the use of the limits that a request has brought along.
func (o *overrides) done(all []asked) {
	for i := range all {
		if l := all[i].brought; l != nil {
			o.mu.Lock()
			l.users--
			l.close()
			o.mu.Unlock()
		}
	}
}

// close frees a limit that is gone and not in use. The store keeps it until then.
func (l *override) close() {
	if c, ok := l.limiter.(io.Closer); ok && l.gone && l.users == 0 {
		_ = c.Close() // never fails
	}
}

func (o *overrides) make(name string, rate algo.Rate) (algo.Limiter, error) {
	if rate.Count == 0 {
		return algo.DenyAll(), nil
	}
	spec := algo.Spec{Rate: rate}
	if rate.Period == periods[envoytype.RateLimitUnit_YEAR] {
		// A bucket that takes a year to fill, rounded up, takes too long.
		spec.Algorithm = "fixed-window"
	}
	if o.store == nil {
		return spec.New()
	}
	return config.NewLimiter(o.store, name, spec)
}
