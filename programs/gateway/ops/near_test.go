package ops

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

func TestNearLimit(t *testing.T) {
	n := newNearLimit()
	see := func(policy string, r telemetry.Result, limit, remaining int64) {
		n.Observe(telemetry.Event{Policy: policy, Result: r, Decision: algo.Decision{Limit: limit, Remaining: remaining}})
	}
	for remaining := range int64(100) {
		see("a", telemetry.Allowed, 100, remaining)
	}
	see("a", telemetry.Denied, 100, 0)
	see("a", telemetry.Allowed, 0, 0) // an adaptive limit that sees no reason for one
	see("one", telemetry.Allowed, 1, 0)
	require.Equal(t, map[string]float64{"a": 20, "one": 1}, counts(t, n))

	for i := range 2 * mostPolicies {
		see(fmt.Sprint(i), telemetry.Allowed, 10, 0)
	}
	require.Len(t, counts(t, n), mostPolicies+1, "names that clients invent share one")
}

func counts(t *testing.T, n *nearLimit) map[string]float64 {
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(n.total))
	families, err := registry.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, m := range families[0].Metric {
		all[m.Label[0].GetValue()] = m.Counter.GetValue()
	}
	return all
}
