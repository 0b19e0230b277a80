package telemetry_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

func TestWhy(t *testing.T) {
	reasoned := func(r algo.Reason) algo.Decision { return algo.Decision{Reason: r} }
	trial := func(r algo.Reason) algo.Decision {
		return algo.Decision{Allowed: true, Source: algo.SourceShadowed, Reason: r}
	}
	for _, row := range []struct {
		e        telemetry.Event
		why      algo.Reason
		shadowed bool
	}{
		{telemetry.Event{Decision: algo.Decision{Allowed: true}}, algo.Admitted, false},
		{telemetry.Event{Result: telemetry.Denied, Decision: reasoned(algo.Overload)}, algo.Overload, false},
		{telemetry.Event{Result: telemetry.Denied, Decision: reasoned(algo.Never)}, algo.Never, false},
		{telemetry.Event{Result: telemetry.Denied, Status: 429}, algo.Quota, false},
		{telemetry.Event{Result: telemetry.Denied, Status: 14, Transport: telemetry.GRPC}, algo.Overload, false},
		{telemetry.Event{Result: telemetry.Denied, Status: 8, Transport: telemetry.GRPC}, algo.Quota, false},
		{telemetry.Event{Result: telemetry.Denied, Err: fmt.Errorf("wrapped: %w", algo.ErrCost)}, algo.Never, false},
		{telemetry.Event{Decision: trial(algo.Quota)}, algo.Quota, true},
		{telemetry.Event{Decision: trial(algo.Overload)}, algo.Overload, true},
		{telemetry.Event{Decision: trial(algo.Admitted)}, algo.Admitted, false},
		{telemetry.Event{Decision: trial(algo.Quota), Result: telemetry.Denied}, algo.Quota, false},
		{telemetry.Event{Decision: trial(algo.Quota), Result: telemetry.Canceled}, algo.Admitted, false},
		{telemetry.Event{Result: telemetry.FailedClosed, Err: algo.ErrCost}, algo.Admitted, false},
	} {
		require.Equal(t, row.why, row.e.Why(), row.e)
		require.Equal(t, row.shadowed, row.e.Shadowed(), row.e)
	}
}

func TestTee(t *testing.T) {
	var told []string
	note := func(name string) telemetry.Observer {
		return func(e telemetry.Event) { told = append(told, name+e.Policy) }
	}
	telemetry.Tee(note("a"), nil, note("b"))(telemetry.Event{Policy: "1"})
	telemetry.Tee(nil, note("c"))(telemetry.Event{Policy: "2"})
	telemetry.Tee()(telemetry.Event{})
	require.Equal(t, []string{"a1", "b1", "c2"}, told)
	boom := func(telemetry.Event) { panic("observer") }
	require.PanicsWithValue(t, "observer", func() { telemetry.Tee(note("d"), boom, note("e"))(telemetry.Event{}) })
	require.Equal(t, "d", told[3])
	require.Len(t, told, 4)
}
