package eventlog_test

import (
	"bytes"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry/eventlog"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/internal/warning"
	"github.com/sluice-go/sluice/keyfunc"
)

// TestWarnings: a warning is one line at Warn with its code, its limit and what to do.
func TestWarnings(t *testing.T) {
	var text, plain bytes.Buffer
	log.SetOutput(&plain)
	eventlog.Warnings(slog.New(slog.NewTextHandler(&text, nil)))
	t.Cleanup(func() {
		eventlog.Warnings(nil)
		log.SetOutput(os.Stderr)
	})
	fill := func(l *algo.RateLimiter) string {
		text.Reset()
		for i := 0; text.Len() == 0 && i < 1e6; i++ {
			l.Allow(string(rune(i)), 1)
		}
		return text.String()
	}
	limit := func() *algo.RateLimiter {
		return algo.Must(algo.NewTokenBucket(algo.PerMinute(5), algo.MaxKeys(1)))
	}
	named := limit()
	httpmw.Limit(algo.Shadow(named), keyfunc.ClientIP(), httpmw.WithName("per-client"))
	require.Contains(t, fill(named), `level=WARN msg="algo: the table of a limiter is full" code=algo.full limit=per-client overflowed=1 do="raise MaxKeys, or find the client that invents keys"`)
	require.Contains(t, fill(limit()), "limit=5-per-1m0s ")

	text.Reset()
	(&warning.Line{Code: "a.b", Message: "m", Do: "d"}).Print("error", "x\n\x1b[31m\" code=forged\u202e")
	require.Contains(t, text.String(), `code=a.b error="`)
	require.NotContains(t, text.String(), "\x1b")
	require.Empty(t, plain.String())

	eventlog.Warnings(nil)
	(&warning.Line{Code: "a.b", Message: "m", Do: "d"}).Print("n", "1", "error", "x\ny")
	require.Contains(t, plain.String(), `m: d: code=a.b n=1 error="x\ny"`+"\n")
}

// TestWarningsAreShort: the text of an error that is too long for a line is cut, in both logs.
func TestWarningsAreShort(t *testing.T) {
	var text, plain bytes.Buffer
	log.SetOutput(&plain)
	eventlog.Warnings(slog.New(slog.NewTextHandler(&text, nil)))
	t.Cleanup(func() {
		eventlog.Warnings(nil)
		log.SetOutput(os.Stderr)
	})
	for range 2 {
		(&warning.Line{Code: "a.b", Message: "m", Do: "d"}).Print("error", strings.Repeat("A", 1<<20), "n", "1")
		eventlog.Warnings(nil)
	}
	for _, out := range []string{text.String(), plain.String()} {
		require.Regexp(t, `error="?A{256}\.\.\."? n=1`, out)
		require.Less(t, len(out), 512)
	}
}
