package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo/telemetry/eventlog"
)

// No policy, method or error can break a line or forge another.
func TestS2_LogLinesAreSafe(t *testing.T) {
	evil := "x\" level=ERROR code=forged\n\x1b[31m<script>\u202e\xff" + strings.Repeat("A", 1<<20)
	for name, handler := range map[string]func(io.Writer) slog.Handler{
		"text":  func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		"json":  func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
		"naive": func(w io.Writer) slog.Handler { return naive{w} },
	} {
		var text bytes.Buffer
		log, err := eventlog.New(slog.New(handler(&text)))
		require.NoError(t, err)
		e := denial(1)
		e.Policy, e.Method, e.Err = evil, evil, errors.New(evil)
		log.Observe(e)
		require.Equal(t, 1, strings.Count(text.String(), "\n"), name)
		require.Less(t, text.Len(), 4096, name)
		for _, r := range strings.TrimSuffix(text.String(), "\n") {
			require.True(t, r >= ' ' && r <= '~', "%s: %q", name, text.String())
		}
	}
}

// naive writes values without quoting.
type naive struct{ w io.Writer }

func (naive) Enabled(context.Context, slog.Level) bool { return true }
func (n naive) WithAttrs([]slog.Attr) slog.Handler     { return n }
func (n naive) WithGroup(string) slog.Handler          { return n }
func (n naive) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool { fmt.Fprint(n.w, a.Key, "=", a.Value.String(), " "); return true })
	fmt.Fprintln(n.w)
	return nil
}

// The denial of a limit that learns has the rate that was in force.
func TestLearnedRate(t *testing.T) {
	var text bytes.Buffer
	log, err := eventlog.New(slog.New(slog.NewTextHandler(&text, nil)))
	require.NoError(t, err)
	e := denial(1)
	e.Rate = 27.5
	log.Observe(e)
	require.Contains(t, text.String(), " rate=27.5\n")
}
