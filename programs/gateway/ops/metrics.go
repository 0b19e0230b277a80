package ops

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/algo/telemetry/otelmetrics"
	"github.com/sluice-go/sluice/distributed"
)

// Metrics has the decisions of the limits, the resources that the process uses,
// and whether the file is in force, for Prometheus.
type Metrics struct {
	*otelmetrics.Metrics
	http.Handler
	registry *prometheus.Registry
	served   *prometheus.HistogramVec
	upstream *prometheus.HistogramVec
	near     *nearLimit
	limits   atomic.Pointer[map[string]Limit]
}

// Show makes limits those whose configuration and tables of keys are shown.
func (m *Metrics) Show(limits map[string]Limit) { m.limits.Store(&limits) }

// shown yields the limits in force, up to the most that metrics tell apart.
func (m *Metrics) shown(yield func(string, algo.Limiter) bool) {
	all := m.limits.Load()
	if all == nil {
		return
	}
	for i, name := range slices.Sorted(maps.Keys(*all)) {
		if i == mostPolicies || !yield(name, (*all)[name].InForce()) {
			return
		}
	}
}

// Observe is a telemetry.Observer.
func (m *Metrics) Observe(e telemetry.Event) {
	m.Metrics.Observe(e)
	m.near.Observe(e)
}

// Request counts an answered request, and the wait for its upstream if it was asked.
func (m *Metrics) Request(route, method string, status int, took, upstream time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "_OTHER" // clients may invent methods
	}
	m.served.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
	if upstream > 0 {
		m.upstream.WithLabelValues(route).Observe(upstream.Seconds())
	}
}

// buckets follow the OpenTelemetry conventions for HTTP.
var buckets = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

// mostPolicies have metrics of their own; the others are counted together.
const mostPolicies = 1000

// NewMetrics makes the instruments. overload is asked for the limiter whose
// gauges are shown; it may answer nil.
func NewMetrics(overload func() *adaptive.Limiter) (*Metrics, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	m, err := otelmetrics.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)), otelmetrics.MaxPolicies(mostPolicies))
	if err != nil {
		return nil, err
	}
	served := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "http_server_request_duration_seconds", Help: "Time from the head of a request to the end of its answer.", Buckets: buckets,
	}, []string{"http_route", "http_request_method", "http_response_status_code"})
	upstream := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "http_client_request_duration_seconds", Help: "Time until the head of the upstream's answer.", Buckets: buckets,
	}, []string{"http_route"})
	near := newNearLimit()
	all := &Metrics{Metrics: m, Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), registry: registry, served: served, upstream: upstream, near: near}
	return all, errors.Join(m.Limits(all.shown),
		registry.Register(served), registry.Register(upstream), registry.Register(near.total),
		registry.Register(collectors.NewGoCollector()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		m.InFlight("overload", inFlight(overload)))
}

// inFlight follows the protection when the file replaces it.
type inFlight func() *adaptive.Limiter

func (f inFlight) InFlight() int {
	if l := f(); l != nil {
		return l.InFlight()
	}
	return 0
}

func (f inFlight) Limit() int {
	if l := f(); l != nil {
		return l.Limit()
	}
	return 0
}

// About adds the version of the program, and the state of the store if there is one.
func (m *Metrics) About(version string, store *distributed.Store) error {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "build_info", Help: "1, with the version of the program.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	if store == nil {
		return m.registry.Register(build)
	}
	gauge := func(name, help string, read func(distributed.Stats) float64) error {
		return m.registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return read(store.Stats()) }))
	}
	return errors.Join(m.registry.Register(build),
		gauge("ratelimit_redis_nodes_away", "Queues to nodes of Redis whose breaker is not closed; 0 while Redis is well.", func(s distributed.Stats) float64 { return float64(s.Away) }),
		gauge("ratelimit_redis_far", "1 if a node answers, but later than redis.timeout.", func(s distributed.Stats) float64 {
			if s.Far() {
				return 1
			}
			return 0
		}),
		gauge("ratelimit_redis_instances", "Instances that share the limits, as this one knows.", func(s distributed.Stats) float64 { return float64(s.Instances) }),
		gauge("ratelimit_redis_denied_keys", "Keys in the deny cache.", func(s distributed.Stats) float64 { return float64(s.Denied) }),
		gauge("ratelimit_redis_round_trip_median_seconds", "Median of the last 128 round trips to the slowest node; 0 before the first.", func(s distributed.Stats) float64 { return s.RoundTrip.Seconds() }),
		gauge("ratelimit_redis_round_trip_p99_seconds", "99th percentile of the last 128 round trips to the slowest node; 0 before the first.", func(s distributed.Stats) float64 { return s.RoundTripP99.Seconds() }))
}

// Counter adds a counter of the program.
func (m *Metrics) Counter(name, help string, read func() int64) error {
	return m.registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
}

// Load adds gauges of the requests in flight of each route with a bound, and of bodies on their way.
func (m *Metrics) Load(routes func(yield func(route string, requests, clients int)), bodies func() int64) error {
	return m.registry.Register(load{routes, bodies})
}

type load struct {
	routes func(yield func(route string, requests, clients int))
	bodies func() int64
}

var (
	requestsInFlight = prometheus.NewDesc("gateway_requests_in_flight", "Requests with the upstream of a route that has in_flight.", []string{"http_route"}, nil)
	clientsInFlight  = prometheus.NewDesc("gateway_clients_in_flight", "Clients with requests in flight on a route that has in_flight_per_client.", []string{"http_route"}, nil)
	bodiesInFlight   = prometheus.NewDesc("gateway_bodies_in_flight", "Requests in flight that have a body.", nil, nil)
)

func (load) Describe(to chan<- *prometheus.Desc) {
	to <- requestsInFlight
	to <- clientsInFlight
	to <- bodiesInFlight
}

func (l load) Collect(to chan<- prometheus.Metric) {
	l.routes(func(route string, requests, clients int) {
		if requests >= 0 {
			to <- prometheus.MustNewConstMetric(requestsInFlight, prometheus.GaugeValue, float64(requests), route)
		}
		if clients >= 0 {
			to <- prometheus.MustNewConstMetric(clientsInFlight, prometheus.GaugeValue, float64(clients), route)
		}
	})
	to <- prometheus.MustNewConstMetric(bodiesInFlight, prometheus.GaugeValue, float64(l.bodies()))
}

// Watch adds the state of the file.
func (m *Metrics) Watch(w *reload.Watcher) error {
	gauge := func(name, help string, read func(reload.Status) float64) error {
		return m.registry.Register(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return read(w.Status()) }))
	}
	return errors.Join(
		gauge("config_last_reload_successful", "1 if the file as it is on disk is in force.", func(s reload.Status) float64 {
			if s.Failed != "" {
				return 0
			}
			return 1
		}),
		gauge("config_last_reload_success_timestamp_seconds", "When the file in force was loaded.", func(s reload.Status) float64 {
			return float64(s.LoadedAt.Unix())
		}))
}
