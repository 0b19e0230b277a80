package otelmetrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
)

// InFlighter is a limiter of requests in flight, such as an adaptive.Limiter.
type InFlighter interface {
	InFlight() int
	Limit() int
}

// gauges are read at each collection.
type gauges struct {
	active, limit        metric.Int64ObservableGauge
	quota, off           metric.Int64ObservableGauge
	keys, room           metric.Int64ObservableGauge
	used, window         metric.Float64ObservableGauge
	asked, got           metric.Float64ObservableGauge
	pace, pause          metric.Float64ObservableGauge
	out, pauses, refused metric.Int64ObservableCounter
	registration         metric.Registration

	mu       sync.Mutex
	limiters []gauge
	limits   []iter.Seq2[string, algo.Limiter]
	shared   []shared
}

// noLimit is the limit of an adaptive limiter that sees no reason for one.
const noLimit = math.MaxInt32

type gauge struct {
	name    string
	limiter InFlighter
	set     metric.ObserveOption
}

func (g *gauges) register(meter metric.Meter) error {
	var failed error
	whole := func(name, unit, about string) metric.Int64ObservableGauge {
		made, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(about))
		failed = cmp.Or(failed, err)
		return made
	}
	count := func(name, unit, about string) metric.Int64ObservableCounter {
		made, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(about))
		failed = cmp.Or(failed, err)
		return made
	}
	g.active = whole("ratelimit.active_requests", "{request}", "Requests that hold a slot of an in-flight limit.")
	g.limit = whole("ratelimit.active_requests.limit", "{request}", "Slots of an in-flight limit; absent while there is no limit.")
	g.quota = whole("ratelimit.limit", "{unit}", "Units that a limit admits at once, as configured.")
	g.off = whole("ratelimit.limit.off", "{limit}", "1 while a limit denies nothing, because it is switched off or on trial; otherwise 0.")
	g.keys = whole("ratelimit.keys", "{key}", "Keys with debt in the table of a limit in this process.")
	g.room = whole("ratelimit.keys.limit", "{key}", "Keys for which the table has room.")
	g.out = count("ratelimit.keys.overflowed", "{charge}", "Charges to new keys that found the table full, since the limiter was made.")
	g.pauses = count("ratelimit.learned.waits", "{wait}", "Waits that the server asked for, since the limiter was made.")
	g.refused = count("ratelimit.learned.denied", "{unit}", "Units that the server denied, since the limiter was made.")
	float := func(name, unit, about string) metric.Float64ObservableGauge {
		made, err := meter.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(about))
		failed = cmp.Or(failed, err)
		return made
	}
	g.used = float("ratelimit.active_requests.utilization", "1", "Share of the slots of an in-flight limit that are held; absent while there is no limit.")
	g.window = float("ratelimit.limit.window", "s", "Time in which the units of a limit come back.")
	g.pace = float("ratelimit.learned.rate", "{unit}/s", "Learned rate of all keys together.")
	g.pause = float("ratelimit.learned.wait", "s", "Time for which the server wants no call, the longest of all keys.")
	g.asked = float("ratelimit.tenant.asked", "1", "Part of one of the heaviest tenants in the demand of an overload.")
	g.got = float("ratelimit.tenant.admitted", "1", "Part of this that was admitted.")
	if failed != nil {
		return failed
	}
	var err error
	g.registration, err = meter.RegisterCallback(g.observe, g.active, g.limit, g.used, g.quota, g.off, g.window, g.keys, g.room, g.out, g.asked, g.got, g.pace, g.pause, g.pauses, g.refused)
	return err
}

func (g *gauges) observe(_ context.Context, o metric.Observer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.limiters {
		active, limit := l.limiter.InFlight(), l.limiter.Limit()
		o.ObserveInt64(g.active, int64(active), l.set)
		if limit > 0 && limit < noLimit {
			o.ObserveInt64(g.limit, int64(limit), l.set)
			o.ObserveFloat64(g.used, float64(active)/float64(limit), l.set)
		}
	}
	for i := range g.shared {
		g.shared[i].observe(o, g)
	}
	for _, all := range g.limits {
		for name, l := range all {
			g.describe(o, l, metric.WithAttributeSet(attribute.NewSet(policyKey.String(harmless(name)))))
		}
	}
	return nil
}

// describe observes the configuration of one limiter and the tables of keys in it.
func (g *gauges) describe(o metric.Observer, l algo.Limiter, set metric.ObserveOption) {
	d, off := algo.About(l), int64(0)
	if d.Off {
		off = 1
	}
	o.ObserveInt64(g.off, off, set)
	if d.Window > 0 {
		o.ObserveInt64(g.quota, d.Quota, set)
		o.ObserveFloat64(g.window, d.Window.Seconds(), set)
	}
	g.learned(o, l, set)
	if s := algo.StatsOf(l); s.Room > 0 {
		o.ObserveInt64(g.keys, int64(s.Live), set)
		o.ObserveInt64(g.room, int64(s.Room), set)
		o.ObserveInt64(g.out, int64(min(s.Overflowed, math.MaxInt64)), set)
	}
}

// learned observes the limits in l that learn, together.
func (g *gauges) learned(o metric.Observer, l algo.Limiter, set metric.ObserveOption) {
	all := learn.In(l)
	var sum learn.Stats
	for _, one := range all {
		s := one.Stats()
		sum.Rate += s.Rate
		sum.Wait = max(sum.Wait, s.Wait)
		sum.Waits += s.Waits
		sum.Denied += s.Denied
	}
	if len(all) > 0 {
		o.ObserveFloat64(g.pace, sum.Rate, set)
		o.ObserveFloat64(g.pause, sum.Wait.Seconds(), set)
		o.ObserveInt64(g.pauses, sum.Waits, set)
		o.ObserveInt64(g.refused, sum.Denied, set)
	}
}

// Limits adds the configured limits and the tables of keys of limiters, by the names of
// their policies, to the gauges. all is read at each collection, so limiters may come and
// go. At most one in use may have a name.
func (m *Metrics) Limits(all iter.Seq2[string, algo.Limiter]) error {
	if all == nil {
		return errors.New("otelmetrics: Limits: the sequence is nil")
	}
	m.gauges.mu.Lock()
	defer m.gauges.mu.Unlock()
	m.gauges.limits = append(m.gauges.limits, all)
	return nil
}

// InFlight adds a limiter to the gauges under the name of its policy. A nil
// limiter, and a second one under the same name, are errors.
func (m *Metrics) InFlight(name string, l InFlighter) error {
	if l == nil {
		return fmt.Errorf("otelmetrics: InFlight: the limiter of policy %q is nil", name)
	}
	g := &m.gauges
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, other := range g.limiters {
		if other.name == name {
			return fmt.Errorf("otelmetrics: InFlight: the policy %q has a limiter already", name)
		}
	}
	set := metric.WithAttributeSet(attribute.NewSet(policyKey.String(harmless(name))))
	g.limiters = append(g.limiters, gauge{name, l, set})
	return nil
}

// Close unregisters the gauges from the provider, which otherwise keeps the
// limiters in memory. The counters remain.
func (m *Metrics) Close() error {
	return m.gauges.registration.Unregister()
}
