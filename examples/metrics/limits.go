package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/algo/telemetry/eventlog"
	"github.com/sluice-go/sluice/algo/telemetry/otelmetrics"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// limits are the same for both transports: the rate of each client, and the
// capacity of the service.
type limits struct {
	users    *algo.RateLimiter
	capacity *adaptive.Limiter
	observe  telemetry.Observer
	denials  *eventlog.Log
	metrics  *otelmetrics.Metrics
	provider *sdkmetric.MeterProvider
	scrape   http.Handler
}

func newLimits(logger *slog.Logger) (*limits, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry))
	if err != nil {
		return nil, fmt.Errorf("the exporter: %w", err)
	}
	l := &limits{
		provider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)),
		scrape:   promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	}
	if l.metrics, err = otelmetrics.New(l.provider); err != nil {
		return nil, err
	}
	if l.denials, err = eventlog.New(logger); err != nil {
		return nil, err
	}
	l.observe = telemetry.Tee(l.metrics.Observe, l.denials.Observe)
	if l.users, err = algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)); err != nil {
		return nil, err
	}
	if l.capacity, err = adaptive.New(strategy.Gradient2()); err != nil {
		return nil, err
	}
	all := map[string]algo.Limiter{"users": l.users, "capacity": l.capacity}
	return l, errors.Join(l.metrics.Limits(maps.All(all)), l.metrics.InFlight("capacity", l.capacity))
}

func (l *limits) http(next http.Handler) http.Handler {
	return httpmw.Limits([]httpmw.Policy{
		{Name: "users", Limiter: l.users, Key: keyfunc.ClientIP()},
		{Name: "capacity", Limiter: l.capacity, Key: keyfunc.Global()},
	}, httpmw.WithObserver(l.observe))(next)
}

func (l *limits) grpc() []grpc.ServerOption {
	return append(
		grpcmw.ServerOptions(l.users, rpckey.ClientIP(), grpcmw.WithName("users"), grpcmw.WithObserver(l.observe)),
		grpcmw.ServerOptions(l.capacity, rpckey.Global(), grpcmw.WithName("capacity"), grpcmw.WithObserver(l.observe))...)
}
