package otelmetrics

import (
	"context"
	"fmt"
	"math"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// InFlighter is a limiter of requests in flight, such as an adaptive.Limiter.
type InFlighter interface {
	InFlight() int
	Limit() int
}

// gauges are read at each collection.
type gauges struct {
	active, limit metric.Int64ObservableGauge
	registration  metric.Registration

	mu       sync.Mutex
	limiters []gauge
}

// noLimit is the limit of an adaptive limiter that sees no reason for one.
const noLimit = math.MaxInt32

type gauge struct {
	name    string
	limiter InFlighter
	set     metric.ObserveOption
}

func (g *gauges) register(meter metric.Meter) (err error) {
	unit := metric.WithUnit("{request}")
	g.active, err = meter.Int64ObservableGauge("ratelimit.active_requests", unit,
		metric.WithDescription("Requests that hold a slot of an in-flight limit."))
	if err != nil {
		return err
	}
	g.limit, err = meter.Int64ObservableGauge("ratelimit.active_requests.limit", unit,
		metric.WithDescription("Slots of an in-flight limit; absent while there is no limit."))
	if err != nil {
		return err
	}
	g.registration, err = meter.RegisterCallback(g.observe, g.active, g.limit)
	return err
}

func (g *gauges) observe(_ context.Context, o metric.Observer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, l := range g.limiters {
		o.ObserveInt64(g.active, int64(l.limiter.InFlight()), l.set)
		if limit := l.limiter.Limit(); limit > 0 && limit < noLimit {
			o.ObserveInt64(g.limit, int64(limit), l.set)
		}
	}
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
	set := metric.WithAttributeSet(attribute.NewSet(attribute.String("policy", harmless(name))))
	g.limiters = append(g.limiters, gauge{name, l, set})
	return nil
}

// Close unregisters the gauges from the provider, which otherwise keeps the
// limiters in memory. The counters remain.
func (m *Metrics) Close() error {
	return m.gauges.registration.Unregister()
}
