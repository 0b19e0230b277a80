package telemetry_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

func TestLogOptions(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	for message, row := range map[string]struct {
		logger *slog.Logger
		opt    telemetry.LogOption
	}{
		"telemetry: NewLog: the logger is nil":                                               {nil, telemetry.LogKeys(1)},
		"telemetry: NewLog: the zero LogOption is not an option":                             {logger, telemetry.LogOption{}},
		"telemetry: NewLog: LogInterval: is 0s, want above 0 and at most 24h":                {logger, telemetry.LogInterval(0)},
		"telemetry: NewLog: LogInterval: is 24h0m0.000000001s, want above 0 and at most 24h": {logger, telemetry.LogInterval(24*time.Hour + 1)},
		"telemetry: NewLog: LogKeys: is 0, want 1 to 1048576":                                {logger, telemetry.LogKeys(0)},
		"telemetry: NewLog: LogKeys: is 1048577, want 1 to 1048576":                          {logger, telemetry.LogKeys(1<<20 + 1)},
	} {
		_, err := telemetry.NewLog(row.logger, row.opt)
		require.EqualError(t, err, message)
	}
}

func TestLogLevels(t *testing.T) {
	var text bytes.Buffer
	log, err := telemetry.NewLog(slog.New(slog.NewTextHandler(&text, nil)), telemetry.LogLevels(telemetry.Levels{
		Denied: slog.LevelDebug, Shadowed: slog.LevelWarn,
	}))
	require.NoError(t, err)
	log.Observe(denial(1))
	require.Empty(t, text.String())
	shadow := denial(1)
	shadow.Result, shadow.Decision.Source = telemetry.Allowed, algo.SourceShadowed
	log.Observe(shadow)
	require.Contains(t, text.String(), "level=WARN")
}
