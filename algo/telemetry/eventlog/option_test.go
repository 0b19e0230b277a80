package eventlog_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/algo/telemetry/eventlog"
)

func TestLogOptions(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	for message, row := range map[string]struct {
		logger *slog.Logger
		opt    eventlog.Option
	}{
		"eventlog: New: the logger is nil":                                             {nil, eventlog.Keys(1)},
		"eventlog: New: the zero Option is not an option":                              {logger, eventlog.Option{}},
		"eventlog: New: Interval: is 0s, want more than 0, at most 24h":                {logger, eventlog.Interval(0)},
		"eventlog: New: Interval: is 24h0m0.000000001s, want more than 0, at most 24h": {logger, eventlog.Interval(24*time.Hour + 1)},
		"eventlog: New: Keys: is 0, want 1 to 1048576":                                 {logger, eventlog.Keys(0)},
		"eventlog: New: Keys: is 1048577, want 1 to 1048576":                           {logger, eventlog.Keys(1<<20 + 1)},
	} {
		_, err := eventlog.New(row.logger, row.opt)
		require.EqualError(t, err, message)
	}
	for name, o := range map[string]eventlog.Option{
		"Interval": eventlog.Interval(1), "Keys": eventlog.Keys(1),
	} {
		_, err := eventlog.New(logger, o, o)
		require.EqualError(t, err, "eventlog: New: duplicate option "+name)
	}
}

func TestLogLevels(t *testing.T) {
	var text bytes.Buffer
	log, err := eventlog.New(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn})))
	require.NoError(t, err)
	log.Observe(denial(1))
	require.Empty(t, text.String(), "Info")
	failure := denial(1)
	failure.Result = telemetry.FailedOpen
	log.Observe(failure)
	require.Contains(t, text.String(), "level=WARN")
}
