package otelmetrics

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/option"
)

// scope is the name of the meter, and of this module.
const scope = "github.com/sluice-go/sluice/algo/telemetry/otelmetrics"

// version returns the version of this module in the program, as far as the build recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == scope && dep.Version != "" {
				return dep.Version
			}
		}
	}
	return "(devel)"
}

// Metrics counts events. Its method Observe is a telemetry.Observer. It is safe
// for concurrent use.
type Metrics struct {
	requests metric.Int64Counter
	fallback metric.Int64Counter
	duration metric.Float64Histogram
	gauges   gauges

	most   int
	mu     sync.Mutex // held to add a policy
	byName atomic.Pointer[map[string]*policy]
	others *policy
}

// Option adjusts Metrics.
type Option struct {
	name  string
	apply func(*Metrics) error
}

func (o Option) split() (string, func(*Metrics) error) { return o.name, o.apply }

// MaxPolicies sets the number of policies that are counted separately, 1 to
// 10000; further ones are "other". The default is 64.
func MaxPolicies(n int) Option {
	return Option{"MaxPolicies", func(m *Metrics) error {
		m.most = n
		if n < 1 || n > 10_000 {
			return fmt.Errorf("is %d, want 1 to 10000", n)
		}
		return nil
	}}
}

// New makes the instruments. It returns an error for an option out of range, and
// the error of the provider.
func New(provider metric.MeterProvider, opts ...Option) (*Metrics, error) {
	if provider == nil {
		return nil, errors.New("otelmetrics: New: the provider is nil")
	}
	m := &Metrics{most: 64, others: new(policy)}
	m.others.name = "other"
	m.byName.Store(&map[string]*policy{})
	if err := option.Apply(m, opts, Option.split, nil); err != nil {
		return nil, fmt.Errorf("otelmetrics: New: %w", err)
	}
	if err := m.instruments(provider.Meter(scope, metric.WithInstrumentationVersion(version()))); err != nil {
		return nil, fmt.Errorf("otelmetrics: New: %w", err)
	}
	return m, nil
}

// seconds has the boundaries of the histogram: from a decision in memory, over
// one in Redis, to a long queue.
var seconds = []float64{1e-6, 1e-5, 1e-4, 5e-4, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

func (m *Metrics) instruments(meter metric.Meter) (err error) {
	unit := metric.WithUnit("{request}")
	m.requests, err = meter.Int64Counter("ratelimit.requests", unit,
		metric.WithDescription("Decisions on requests."))
	if err != nil {
		return err
	}
	m.fallback, err = meter.Int64Counter("ratelimit.fallback", unit,
		metric.WithDescription("Local decisions because the shared store was unavailable."))
	if err != nil {
		return err
	}
	m.duration, err = meter.Float64Histogram("ratelimit.queue.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of decisions, including queues and delays."),
		metric.WithExplicitBucketBoundaries(seconds...))
	if err != nil {
		return err
	}
	return m.gauges.register(meter)
}

// Observe counts an event, and describes it in the request's span. Without a recorded span
// it allocates nothing once the policy has been seen.
func (m *Metrics) Observe(e telemetry.Event) {
	ctx := e.Context // exemplars refer to its span
	if ctx == nil {
		ctx = context.Background()
	}
	result := resultOf(&e)
	describe(&e, result)
	s := m.policy(e.Policy).series(&e)
	m.requests.Add(ctx, 1, s.results[result]...)
	if e.Waited > 0 {
		m.duration.Record(ctx, e.Waited.Seconds(), s.record...)
	}
	if e.Decision.Source == algo.SourceFallback {
		m.fallback.Add(ctx, 1, s.add...)
	}
}

// policy returns the policy of a name, and adds it if there is room.
func (m *Metrics) policy(name string) *policy {
	if p, ok := (*m.byName.Load())[name]; ok {
		return p
	}
	return m.add(name)
}

func (m *Metrics) add(name string) *policy {
	if len(*m.byName.Load()) >= m.most {
		return m.others
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := *m.byName.Load()
	if p, ok := known[name]; ok {
		return p
	}
	if len(known) >= m.most {
		return m.others
	}
	next := make(map[string]*policy, len(known)+1)
	for n, p := range known {
		next[n] = p
	}
	p := &policy{name: harmless(name)}
	next[name] = p
	m.byName.Store(&next)
	return p
}
