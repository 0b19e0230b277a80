package telemetry_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

// BenchmarkLog is what an event costs that writes nothing.
func BenchmarkLog(b *testing.B) {
	log, err := telemetry.NewLog(slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	debug, err := telemetry.NewLog(slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(b, err)
	admitted := telemetry.Event{At: time.Now(), Policy: "p", Decision: algo.Decision{Allowed: true}, KeyHash: 1}
	for _, row := range []struct {
		name string
		log  *telemetry.Log
		e    telemetry.Event
		step uint64
	}{
		{"admitted", debug, admitted, 0},
		{"disabled", log, denial(1), 0},
		{"one key", debug, denial(1), 0},
		{"a million keys", debug, denial(1), 1},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				row.e.KeyHash += row.step
				row.log.Observe(row.e)
			}
		})
	}
}
