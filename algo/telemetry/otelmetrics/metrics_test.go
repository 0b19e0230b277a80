package otelmetrics_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/algo/telemetry/otelmetrics"
	"github.com/sluice-go/sluice/keyfunc"
)

// provider records counts by instrument and attributes. It replaces the SDK,
// which has many dependencies; examples/metrics tests with the SDK.
type provider struct {
	noop.MeterProvider
	fail    string // the instrument that fails
	version string // of the scope

	mu       sync.Mutex
	sums     map[string]float64
	names    map[attribute.Distinct]string
	callback metric.Callback
	closed   int
}

func newProvider() *provider {
	return &provider{sums: map[string]float64{}, names: map[attribute.Distinct]string{}}
}

func newMetrics(t testing.TB, opts ...otelmetrics.Option) (*provider, *otelmetrics.Metrics) {
	t.Helper()
	p := newProvider()
	m, err := otelmetrics.New(p, opts...)
	require.NoError(t, err)
	return p, m
}

func (p *provider) Meter(_ string, opts ...metric.MeterOption) metric.Meter {
	c := metric.NewMeterConfig(opts...)
	p.version = c.InstrumentationVersion()
	return meter{p: p}
}

// Backends tell instrumentations apart by the version of the scope.
func TestScopeHasAVersion(t *testing.T) {
	p, _ := newMetrics(t)
	require.NotEmpty(t, p.version)
}

// What a limit admits that is off is no decision of it.
func TestOffIsNotAllowed(t *testing.T) {
	p, m := newMetrics(t)
	m.Observe(telemetry.Event{Policy: "a", Decision: algo.Decision{Allowed: true, Limit: 1}})
	for range 2 {
		m.Observe(telemetry.Event{Policy: "a", Decision: algo.Decision{Allowed: true, Source: algo.SourceOff}})
	}
	const of = "requests ratelimit.outcome=%s,ratelimit.policy=a,ratelimit.transport=http"
	require.Equal(t, 1.0, p.sums[fmt.Sprintf(of, "allowed")])
	require.Equal(t, 2.0, p.sums[fmt.Sprintf(of, "off")])
}

type meter struct {
	noop.Meter
	p *provider
}

func (m meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{p: m.p, name: name}, m.p.failure(name)
}

func (m meter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return histogram{p: m.p, name: name}, m.p.failure(name)
}

func (m meter) Int64ObservableGauge(name string, _ ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	return gauge{name: name}, m.p.failure(name)
}

func (m meter) Int64ObservableCounter(name string, _ ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	return total{name: name}, m.p.failure(name)
}

func (m meter) Float64ObservableGauge(name string, _ ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	return share{name: name}, m.p.failure(name)
}

func (m meter) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	m.p.callback = f
	return registration{p: m.p}, nil
}

func (p *provider) failure(name string) error {
	if p.fail == name {
		return errors.New("no " + name)
	}
	return nil
}

func (p *provider) add(name string, set attribute.Set, v float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, known := p.names[set.Equivalent()]
	if !known {
		text = set.Encoded(attribute.DefaultEncoder())
		p.names[set.Equivalent()] = text
	}
	p.sums[strings.TrimPrefix(name, "ratelimit.")+" "+text] += v
}

type counter struct {
	noop.Int64Counter
	p    *provider
	name string
}

func (c counter) Add(_ context.Context, n int64, opts ...metric.AddOption) {
	c.p.add(c.name, metric.NewAddConfig(opts).Attributes(), float64(n))
}

type histogram struct {
	noop.Float64Histogram
	p    *provider
	name string
}

func (h histogram) Record(_ context.Context, v float64, opts ...metric.RecordOption) {
	h.p.add(h.name, metric.NewRecordConfig(opts).Attributes(), v)
}

type gauge struct {
	noop.Int64ObservableGauge
	name string
}

type total struct {
	noop.Int64ObservableCounter
	name string
}

type share struct {
	noop.Float64ObservableGauge
	name string
}

type registration struct {
	noop.Registration
	p *provider
}

func (r registration) Unregister() error { r.p.closed++; return nil }

// reading is one collection of the gauges.
type reading struct {
	noop.Observer
	p *provider
}

func (r reading) ObserveInt64(o metric.Int64Observable, v int64, opts ...metric.ObserveOption) {
	name := ""
	switch o := o.(type) {
	case gauge:
		name = o.name
	case total:
		name = o.name
	}
	r.p.add(name, metric.NewObserveConfig(opts).Attributes(), float64(v))
}

func (r reading) ObserveFloat64(o metric.Float64Observable, v float64, opts ...metric.ObserveOption) {
	r.p.add(o.(share).name, metric.NewObserveConfig(opts).Attributes(), v)
}

func TestMetrics(t *testing.T) {
	denied := func(r algo.Reason) algo.Decision { return algo.Decision{Reason: r} }
	trial := func(r algo.Reason) algo.Decision {
		return algo.Decision{Allowed: true, Source: algo.SourceTrial, Trial: r}
	}
	for _, row := range []struct {
		e    telemetry.Event
		want string
	}{
		{telemetry.Event{Decision: algo.Decision{Allowed: true}}, "requests ratelimit.outcome=allowed,ratelimit.policy=p,ratelimit.transport=http"},
		{telemetry.Event{Result: telemetry.Canceled, Client: true}, "requests ratelimit.outcome=canceled,ratelimit.policy=p,ratelimit.transport=http-client"},
		{telemetry.Event{Result: telemetry.FailedOpen, Transport: telemetry.GRPC}, "requests ratelimit.outcome=failed_open,ratelimit.policy=p,ratelimit.transport=grpc"},
		{telemetry.Event{Result: telemetry.FailedClosed, Transport: telemetry.GRPC, Client: true}, "requests ratelimit.outcome=failed_closed,ratelimit.policy=p,ratelimit.transport=grpc-client"},
		{telemetry.Event{Result: telemetry.Denied, Decision: denied(algo.Quota)}, "requests ratelimit.outcome=denied,ratelimit.policy=p,ratelimit.reason=quota,ratelimit.transport=http"},
		{telemetry.Event{Result: telemetry.Denied, Decision: denied(algo.Overload)}, "requests ratelimit.outcome=denied,ratelimit.policy=p,ratelimit.reason=overload,ratelimit.transport=http"},
		{telemetry.Event{Result: telemetry.Denied, Decision: denied(algo.Never)}, "requests ratelimit.outcome=denied,ratelimit.policy=p,ratelimit.reason=never,ratelimit.transport=http"},
		{telemetry.Event{Decision: trial(algo.Quota)}, "requests ratelimit.outcome=shadowed,ratelimit.policy=p,ratelimit.reason=quota,ratelimit.transport=http"},
		{telemetry.Event{Decision: trial(algo.Overload)}, "requests ratelimit.outcome=shadowed,ratelimit.policy=p,ratelimit.reason=overload,ratelimit.transport=http"},
		{telemetry.Event{Decision: trial(algo.Never)}, "requests ratelimit.outcome=shadowed,ratelimit.policy=p,ratelimit.reason=never,ratelimit.transport=http"},
		{telemetry.Event{Result: 99}, "requests ratelimit.outcome=unknown,ratelimit.policy=p,ratelimit.transport=http"},
		{telemetry.Event{Policy: "\xff" + strings.Repeat("x", 100)}, "requests ratelimit.outcome=allowed,ratelimit.policy=?" + strings.Repeat("x", 63) + ",ratelimit.transport=http"},
	} {
		p, m := newMetrics(t)
		if row.e.Policy == "" {
			row.e.Policy = "p"
		}
		m.Observe(row.e)
		m.Observe(row.e)
		require.Equal(t, map[string]float64{row.want: 2}, p.sums)
	}
}

func TestDurationAndFallback(t *testing.T) {
	p, m := newMetrics(t)
	m.Observe(telemetry.Event{Policy: "p", Waited: 1500 * time.Millisecond, Decision: algo.Decision{Allowed: true, Source: algo.SourceFallback}})
	m.Observe(telemetry.Event{Policy: "p", Waited: time.Second, Result: telemetry.Denied, Transport: telemetry.GRPC, Decision: algo.Decision{Source: algo.SourceFallback}})
	m.Observe(telemetry.Event{Policy: "p", Decision: algo.Decision{Allowed: true, Source: algo.SourceRemote}})
	require.Equal(t, map[string]float64{
		"requests ratelimit.outcome=allowed,ratelimit.policy=p,ratelimit.transport=http":                       2,
		"requests ratelimit.outcome=denied,ratelimit.policy=p,ratelimit.reason=quota,ratelimit.transport=grpc": 1,
		"queue.duration ratelimit.policy=p,ratelimit.transport=http":                                           1.5,
		"queue.duration ratelimit.policy=p,ratelimit.transport=grpc":                                           1,
		"fallback ratelimit.policy=p,ratelimit.transport=http":                                                 1,
		"fallback ratelimit.policy=p,ratelimit.transport=grpc":                                                 1,
	}, p.sums)
}

type inFlight struct{ n, limit int }

func (f inFlight) InFlight() int { return f.n }
func (f inFlight) Limit() int    { return f.limit }

func TestGauges(t *testing.T) {
	p, m := newMetrics(t)
	require.NoError(t, m.InFlight("a", inFlight{32, 64}))
	require.NoError(t, m.InFlight("b", inFlight{0, 8}))
	require.NoError(t, m.InFlight("no limit", inFlight{1, math.MaxInt32}))
	require.EqualError(t, m.InFlight("a", inFlight{}), `otelmetrics: InFlight: the policy "a" has a limiter already`)
	require.EqualError(t, m.InFlight("c", nil), `otelmetrics: InFlight: the limiter of policy "c" is nil`)
	require.NoError(t, p.callback(t.Context(), reading{p: p}))
	require.Equal(t, map[string]float64{
		"active_requests ratelimit.policy=a": 32, "active_requests.limit ratelimit.policy=a": 64, "active_requests.utilization ratelimit.policy=a": .5,
		"active_requests ratelimit.policy=b": 0, "active_requests.limit ratelimit.policy=b": 8, "active_requests.utilization ratelimit.policy=b": 0,
		"active_requests ratelimit.policy=no limit": 1,
	}, p.sums)
	require.NoError(t, m.Close())
	require.Equal(t, 1, p.closed)
}

type tenants []adaptive.TenantUse

func (l tenants) Tenants(n int) []adaptive.TenantUse { return l[:min(n, len(l))] }

// The heaviest tenants, no more of them than asked for, and each with a label of its own.
func TestTenants(t *testing.T) {
	p, m := newMetrics(t)
	long := strings.Repeat("l", 64)
	all := tenants{{Tenant: "flood", Asked: .8, Admitted: .25}, {Tenant: "\xff", Asked: .125, Admitted: 1},
		{Tenant: long + "a", Asked: .5}, {Tenant: long + "b", Asked: .25}, {Tenant: "d"}}
	labelOf := func(start, key string) string {
		return fmt.Sprintf("ratelimit.tenant=%s~%016x", start, keyfunc.Hash(key))
	}
	require.NoError(t, m.Tenants("api", 4, all))
	require.EqualError(t, m.Tenants("api", 2, all), `otelmetrics: Tenants: the policy "api" has a limiter already`)
	require.EqualError(t, m.Tenants("b", 2, nil), `otelmetrics: Tenants: the limiter of policy "b" is nil`)
	for _, n := range []int{-1, 0, 33} {
		require.EqualError(t, m.Tenants("b", n, all), fmt.Sprintf("otelmetrics: Tenants: the number of tenants is %d, want 1 to 32", n))
	}
	require.NoError(t, p.callback(t.Context(), reading{p: p}))
	require.Equal(t, map[string]float64{
		"tenant.asked ratelimit.policy=api,ratelimit.tenant=flood": .8, "tenant.admitted ratelimit.policy=api,ratelimit.tenant=flood": .25,
		"tenant.asked ratelimit.policy=api," + labelOf("?", "\xff"): .125, "tenant.admitted ratelimit.policy=api," + labelOf("?", "\xff"): 1,
		"tenant.asked ratelimit.policy=api," + labelOf(long[:47], long+"a"): .5, "tenant.admitted ratelimit.policy=api," + labelOf(long[:47], long+"a"): 0,
		"tenant.asked ratelimit.policy=api," + labelOf(long[:47], long+"b"): .25, "tenant.admitted ratelimit.policy=api," + labelOf(long[:47], long+"b"): 0,
	}, p.sums)
}

// The limits as configured and the tables of keys, of limiters that come and go.
func TestLimits(t *testing.T) {
	p, m := newMetrics(t)
	require.EqualError(t, m.Limits(nil), "otelmetrics: Limits: the sequence is nil")
	bucket := algo.Must(algo.NewTokenBucket(algo.PerMinute(60), algo.Burst(10), algo.MaxKeys(64)))
	require.True(t, bucket.Allow("ann", 1))
	limits := map[string]algo.Limiter{"users": bucket, "none": algo.Unlimited()}
	require.NoError(t, m.Limits(maps.All(limits)))
	require.NoError(t, p.callback(t.Context(), reading{p: p}))
	require.Equal(t, map[string]float64{
		"limit.off ratelimit.policy=users": 0, "limit.off ratelimit.policy=none": 1,
		"limit ratelimit.policy=users": 10, "limit.window ratelimit.policy=users": 10,
		"keys ratelimit.policy=users": 1, "keys.limit ratelimit.policy=users": 64, "keys.overflowed ratelimit.policy=users": 0,
	}, p.sums)
	delete(limits, "users")
	clear(p.sums)
	partner := learn.New(algo.PerSecond(50))
	partner.Answered("", learn.Answer{Sent: time.Now(), Denied: true, Units: 3, Wait: time.Hour})
	limits["partner"] = algo.Shadow(partner)
	require.NoError(t, p.callback(t.Context(), reading{p: p}))
	require.InDelta(t, 3600, p.sums["learned.wait ratelimit.policy=partner"], 60)
	delete(p.sums, "learned.wait ratelimit.policy=partner")
	require.Equal(t, map[string]float64{
		"limit.off ratelimit.policy=partner": 1, "limit.off ratelimit.policy=none": 1,
		"learned.rate ratelimit.policy=partner": partner.Stats().Rate, "learned.waits ratelimit.policy=partner": 1, "learned.denied ratelimit.policy=partner": 3,
	}, p.sums)
	clear(limits)
	clear(p.sums)
	require.NoError(t, p.callback(t.Context(), reading{p: p}))
	require.Empty(t, p.sums)
}

// The table of keys is found beneath every wrapper; several are added up, and each counts once.
func TestTablesBeneathWrappers(t *testing.T) {
	for name, wrap := range map[string]func(algo.Limiter) algo.Limiter{
		"Shadow": algo.Shadow,
		"Switch": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"ByKey": func(l algo.Limiter) algo.Limiter {
			return algo.ByKey(func(context.Context, string) algo.Limiter { return l }, l)
		},
		"All": func(l algo.Limiter) algo.Limiter { return algo.All(l, algo.Unlimited()) },
		"Ban": func(l algo.Limiter) algo.Limiter {
			return algo.Must(guard.NewBan(l, algo.PerHour(9), time.Minute, time.Hour))
		},
		"FailuresOnly": guard.FailuresOnly,
		"First":        func(l algo.Limiter) algo.Limiter { return prepaid.First(l, algo.Unlimited()) },
		"reload": func(l algo.Limiter) algo.Limiter {
			limits := reload.New(reload.Config{New: func(string, algo.Spec) (algo.Limiter, error) { return l, nil }})
			_, err := limits.Apply(map[string]algo.Spec{"a": {Rate: algo.PerHour(10)}}, nil)
			require.NoError(t, err)
			return algo.Must(limits.Limiter("a"))
		},
		"nested": func(l algo.Limiter) algo.Limiter { return algo.All(algo.Shadow(algo.NewSwitch(l)), l) },
	} {
		p, m := newMetrics(t)
		bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(10), algo.MaxKeys(64)))
		require.True(t, bucket.Allow("ann", 1))
		require.NoError(t, m.Limits(maps.All(map[string]algo.Limiter{"users": wrap(bucket)})))
		require.NoError(t, p.callback(t.Context(), reading{p: p}))
		require.Equal(t, 1.0, p.sums["keys ratelimit.policy=users"], name)
		require.Equal(t, 64.0, p.sums["keys.limit ratelimit.policy=users"], name)
		require.Contains(t, p.sums, "keys.overflowed ratelimit.policy=users", name)
	}
}

// span records its attributes.
type span struct {
	trace.Span
	recording bool
	got       map[string]string
}

func (s *span) IsRecording() bool { return s.recording }

func (s *span) SetAttributes(all ...attribute.KeyValue) {
	for _, kv := range all {
		s.got[string(kv.Key)] = fmt.Sprint(kv.Value.AsInterface())
	}
}

// The span of the request has the decisions of its limits.
func TestSpan(t *testing.T) {
	_, m := newMetrics(t)
	s := &span{Span: trace.SpanFromContext(t.Context()), recording: true, got: map[string]string{}}
	ctx := trace.ContextWithSpan(t.Context(), s)
	m.Observe(telemetry.Event{Context: ctx, Policy: "a", Decision: algo.Decision{Allowed: true, Limit: 10, Remaining: 9}})
	m.Observe(telemetry.Event{Context: ctx, Policy: "b", Result: telemetry.Denied, Decision: algo.Decision{Reason: algo.Overload}})
	require.Equal(t, map[string]string{
		"ratelimit.policy.a.outcome": "allowed", "ratelimit.policy.a.limit": "10", "ratelimit.policy.a.remaining": "9",
		"ratelimit.policy.b.outcome": "denied", "ratelimit.policy.b.reason": "overload",
	}, s.got)
	clear(s.got)
	s.recording = false
	m.Observe(telemetry.Event{Context: ctx, Policy: "a"})
	require.Empty(t, s.got)
}

// A million keys with a method each, under ten thousand policies, from several
// goroutines, make no more series than the separate policies allow.
func TestCardinalityIsFixed(t *testing.T) {
	const keys, most = 1_000_000, 8
	p, m := newMetrics(t, otelmetrics.MaxPolicies(most))
	each := []telemetry.Event{
		{Decision: algo.Decision{Allowed: true}, Waited: time.Millisecond},
		{Result: telemetry.Denied, Transport: telemetry.GRPC},
	}
	var names [10_000]string
	for i := range names {
		names[i] = fmt.Sprint("policy", i)
	}
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() {
			for i := part; i < keys; i += 4 {
				e := each[i%len(each)]
				e.KeyHash, e.Method, e.Policy = uint64(i), names[i%len(names)], names[i/2%len(names)]
				m.Observe(e)
			}
		})
	}
	wg.Wait()
	require.Len(t, p.sums, 3*(most+1), "two results and a duration for each policy, and for the others")
	total := 0.0
	for name, n := range p.sums {
		if strings.HasPrefix(name, "requests") {
			total += n
		}
	}
	require.EqualValues(t, keys, total)
	require.Greater(t, p.sums["requests ratelimit.outcome=allowed,ratelimit.policy=other,ratelimit.transport=http"], 0.9*keys/2)
}

func TestObserveAllocatesNothing(t *testing.T) {
	m, err := otelmetrics.New(noop.NewMeterProvider(), otelmetrics.MaxPolicies(1))
	require.NoError(t, err)
	for _, name := range []string{"known", "one too many"} {
		e := telemetry.Event{Policy: name, Waited: 1, Decision: algo.Decision{Allowed: true, Source: algo.SourceFallback}}
		m.Observe(e)
		require.Zero(t, testing.AllocsPerRun(100, func() { m.Observe(e) }))
	}
}

func TestNewErrors(t *testing.T) {
	_, err := otelmetrics.New(nil)
	require.EqualError(t, err, "otelmetrics: New: the provider is nil")
	for message, o := range map[string]otelmetrics.Option{
		"otelmetrics: New: the zero Option is not an option":       {},
		"otelmetrics: New: MaxPolicies: is 0, want 1 to 10000":     otelmetrics.MaxPolicies(0),
		"otelmetrics: New: MaxPolicies: is 10001, want 1 to 10000": otelmetrics.MaxPolicies(10_001),
	} {
		_, err := otelmetrics.New(newProvider(), o)
		require.EqualError(t, err, message)
	}
	_, err = otelmetrics.New(newProvider(), otelmetrics.MaxPolicies(1), otelmetrics.MaxPolicies(2))
	require.EqualError(t, err, "otelmetrics: New: duplicate option MaxPolicies")
	for _, name := range []string{"requests", "fallback", "queue.duration", "active_requests", "active_requests.limit", "active_requests.utilization", "limit", "keys"} {
		p := newProvider()
		p.fail = "ratelimit." + name
		_, err := otelmetrics.New(p)
		require.EqualError(t, err, "otelmetrics: New: no ratelimit."+name)
	}
}

// BenchmarkObserve measures an event without the SDK.
func BenchmarkObserve(b *testing.B) {
	m, err := otelmetrics.New(noop.NewMeterProvider())
	require.NoError(b, err)
	e := telemetry.Event{Policy: "users", Waited: time.Microsecond, Decision: algo.Decision{Allowed: true}}
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(e)
	}
}
