package otelmetrics_test

import (
	"fmt"
	"log"
	"net/http"

	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry/otelmetrics"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// One Metrics for all limits of a process. The provider would be one of the SDK;
// examples/metrics has a whole server.
func Example() {
	metrics, err := otelmetrics.New(noop.NewMeterProvider())
	if err != nil {
		log.Fatal(err)
	}
	users := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
	handler := httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithName("users"),
		httpmw.WithObserver(metrics.Observe))(http.NotFoundHandler())
	server := grpc.NewServer(grpcmw.ServerOptions(users, rpckey.PeerIP(), grpcmw.WithName("users"),
		grpcmw.WithObserver(metrics.Observe))...)
	_, _ = handler, server
}

// The gauges are read at each collection.
func ExampleMetrics_InFlight() {
	metrics, err := otelmetrics.New(noop.NewMeterProvider())
	if err != nil {
		log.Fatal(err)
	}
	defer metrics.Close()
	capacity := algo.Must(adaptive.New(adaptive.Fixed(64)))
	defer capacity.Close()
	err = metrics.InFlight("capacity", capacity)
	fmt.Println(err)
	handler := httpmw.Limit(capacity, keyfunc.Global(), httpmw.WithName("capacity"),
		httpmw.WithObserver(metrics.Observe))(http.NotFoundHandler())
	_ = handler
	// Output: <nil>
}

// The ten tenants that ask for the most, while there is overload. Their keys become labels.
func ExampleMetrics_Tenants() {
	metrics, err := otelmetrics.New(noop.NewMeterProvider())
	if err != nil {
		log.Fatal(err)
	}
	defer metrics.Close()
	capacity := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithFairShares(nil)))
	defer capacity.Close()
	fmt.Println(metrics.Tenants("capacity", 10, capacity))
	// Output: <nil>
}
