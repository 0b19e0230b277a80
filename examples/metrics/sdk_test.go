package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/algo/telemetry/otelmetrics"
)

// counted collects what the SDK has: the number of series of each instrument,
// and the sum of ratelimit.requests.
func counted(t *testing.T, reader sdkmetric.Reader) (series map[string]int, requests int64) {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	series = map[string]int{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				series[m.Name] = len(data.DataPoints)
				for _, p := range data.DataPoints {
					if m.Name == "ratelimit.requests" {
						requests += p.Value
					}
				}
			case metricdata.Histogram[float64]:
				series[m.Name] = len(data.DataPoints)
			case metricdata.Gauge[int64]:
				series[m.Name] = len(data.DataPoints)
			}
		}
	}
	return series, requests
}

// A million keys and a thousand policies in the SDK: as many series as 64
// policies and the others have.
func TestCardinalityInTheSDK(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithCardinalityLimit(0))
	defer provider.Shutdown(context.Background())
	m, err := otelmetrics.New(provider)
	require.NoError(t, err)
	var names [1000]string
	for i := range names {
		names[i] = fmt.Sprint("policy", i)
	}
	const keys = 1_000_000
	want := map[string]int{"ratelimit.requests": 2 * 65, "ratelimit.queue.duration": 65, "ratelimit.fallback": 65}
	for i := range keys {
		e := telemetry.Event{
			Policy: names[i/2%len(names)], KeyHash: uint64(i), Method: names[i%len(names)], Waited: time.Microsecond,
			Result: telemetry.Result(i % 2), Decision: algo.Decision{Source: algo.SourceFallback},
		}
		m.Observe(e)
		if i == keys/100 {
			series, _ := counted(t, reader)
			require.Equal(t, want, series)
		}
	}
	series, requests := counted(t, reader)
	require.Equal(t, want, series)
	require.EqualValues(t, keys, requests)
}

// The requests in flight are read at each collection, until Close.
func TestGaugesInTheSDK(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer provider.Shutdown(context.Background())
	m, err := otelmetrics.New(provider)
	require.NoError(t, err)
	require.NoError(t, m.InFlight("a", fixed(3)))
	series, _ := counted(t, reader)
	require.Equal(t, map[string]int{"ratelimit.active_requests": 1, "ratelimit.active_requests.limit": 1}, series)
	require.NoError(t, m.Close())
	series, _ = counted(t, reader)
	require.Empty(t, series)
}

type fixed int

func (f fixed) InFlight() int { return int(f) }
func (f fixed) Limit() int    { return int(f) }

// BenchmarkObserveWithTheSDK is the cost of an event with the SDK behind it.
func BenchmarkObserveWithTheSDK(b *testing.B) {
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	defer provider.Shutdown(context.Background())
	m, err := otelmetrics.New(provider)
	require.NoError(b, err)
	e := telemetry.Event{Policy: "users", Waited: time.Microsecond, Decision: algo.Decision{Allowed: true}}
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(e)
	}
}
