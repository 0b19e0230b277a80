package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

var quota = algo.Decision{Reason: algo.Quota, Limit: 1, RetryAfter: time.Second}

// denial is a denied request of a key.
func denial(key uint64) telemetry.Event {
	return telemetry.Event{
		At: time.Now(), Policy: "p", Result: telemetry.Denied, Decision: quota, Status: 429, Cost: 1, KeyHash: key,
		Sent: telemetry.Sent{RetryAfter: 2 * time.Second},
	}
}

// journal is a log and what it has written.
type journal struct {
	*telemetry.Log
	text bytes.Buffer
}

func newJournal(t *testing.T, opts ...telemetry.LogOption) *journal {
	t.Helper()
	j := new(journal)
	log, err := telemetry.NewLog(slog.New(slog.NewJSONHandler(&j.text, &slog.HandlerOptions{Level: slog.LevelDebug})), opts...)
	require.NoError(t, err)
	j.Log = log
	return j
}

// take returns the lines since the last call, as "code policy key count".
func (j *journal) take(t *testing.T) (lines []string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(j.text.String()), "\n") {
		if line == "" {
			continue
		}
		var l struct {
			Code, Policy, Key string
			Count             int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		key := strings.TrimLeft(l.Key, "0")
		lines = append(lines, fmt.Sprint(strings.TrimPrefix(l.Code, "telemetry."), " ", l.Policy, " ", key, " ", l.Count))
	}
	j.text.Reset()
	return lines
}

// The first denial of a key is told at once, the others with the next line or
// when the interval is over.
func TestLogSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(t)
		admission := func() {
			j.Observe(telemetry.Event{At: time.Now(), Policy: "p", Decision: algo.Decision{Allowed: true}})
		}
		j.Observe(denial(1))
		j.Observe(denial(2))
		require.Equal(t, []string{"denied p 1 1", "denied p 2 1"}, j.take(t))
		for range 5 {
			j.Observe(denial(1))
		}
		admission()
		require.Empty(t, j.take(t))

		time.Sleep(10 * time.Second)
		j.Observe(denial(1))
		require.Equal(t, []string{"denied p 1 6"}, j.take(t), "the five that were counted, and this one")
		j.Observe(denial(1))
		time.Sleep(10 * time.Second)
		require.Empty(t, j.take(t), "nobody is there to write it")
		admission()
		require.Equal(t, []string{"denied p 1 1"}, j.take(t), "written by the next event, whatever it is")
		admission()
		require.Empty(t, j.take(t))

		j.Observe(denial(2))
		other := denial(2)
		other.Policy = "q"
		j.Observe(other)
		require.Equal(t, []string{"denied p 2 1", "denied q 2 1"}, j.take(t))
		j.Observe(denial(2))
		j.Flush()
		require.Equal(t, []string{"denied p 2 1"}, j.take(t))
		j.Flush()
		require.Empty(t, j.take(t))
	})
}

func TestLogTopics(t *testing.T) {
	j := newJournal(t)
	broken := errors.New("key=hunter2")
	at := time.Now()
	for range 3 {
		j.Observe(telemetry.Event{At: at, Policy: "p", Decision: algo.Decision{Allowed: true, Source: algo.SourceShadowed, Reason: algo.Quota}, KeyHash: 7})
		j.Observe(telemetry.Event{At: at, Policy: "p", Decision: algo.Decision{Allowed: true, Source: algo.SourceFallback}, KeyHash: 7})
		j.Observe(telemetry.Event{At: at, Policy: "p", Result: telemetry.FailedOpen, Err: fmt.Errorf("wrapped: %w", broken), KeyHash: 7})
		j.Observe(telemetry.Event{At: at, Policy: "p", Result: telemetry.FailedClosed, Err: broken, KeyHash: 8})
		j.Observe(telemetry.Event{At: at, Policy: "p", Result: telemetry.Canceled, KeyHash: 7})
		j.Observe(telemetry.Event{At: at, Policy: "p", Decision: algo.Decision{Allowed: true}, KeyHash: 7})
	}
	require.NotContains(t, j.text.String(), "hunter2")
	require.Contains(t, j.text.String(), `"cause":"*errors.errorString"`)
	require.Equal(t, []string{"shadowed p 7 1", "fallback p  1", "failed-open p  1", "failed-closed p  1"}, j.take(t))
	j.Flush()
	require.ElementsMatch(t, []string{"shadowed p 7 2", "fallback p  2", "failed-open p  2", "failed-closed p  2"}, j.take(t))
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

// A million keys fit into the slots that there are, and into as many lines.
func TestLogIsBounded(t *testing.T) {
	const slots, keys = 16, 1_000_000
	j := newJournal(t, telemetry.LogKeys(slots))
	at := time.Now()
	e := denial(0)
	e.At = at
	told := 0
	for key := range uint64(keys) {
		e.KeyHash = key + 1
		j.Observe(e)
	}
	lines := j.take(t)
	require.Len(t, lines, slots+1)
	require.Equal(t, "others   1", lines[slots])
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		e.KeyHash++
		told++
		j.Observe(e)
	}), "what is only counted allocates nothing")
	require.Empty(t, j.take(t))
	j.Flush()
	require.Equal(t, []string{fmt.Sprint("others   ", keys-slots-1+told)}, j.take(t), "no denial is lost")
}

// After the interval the slots are there again, though each event gives back two
// at most.
func TestLogRecoversFromAFlood(t *testing.T) {
	j := newJournal(t, telemetry.LogKeys(16), telemetry.LogInterval(time.Second))
	e := denial(0)
	for key := range uint64(100) {
		e.KeyHash = key + 1
		j.Observe(e)
	}
	j.take(t)
	e.At = e.At.Add(time.Second)
	var lines []string
	for key := range uint64(100) {
		e.KeyHash = key + 1001
		j.Observe(e)
		told := j.take(t)
		require.LessOrEqual(t, len(told), 5)
		lines = append(lines, told...)
	}
	require.Contains(t, strings.Join(lines, "\n"), "denied p 3f8 1", "a slot of the flood has become free")
	require.LessOrEqual(t, len(lines), 2*(16+1))
}

// Whatever policies, methods and errors contain, a line stays a line.
func TestLogLinesAreSafe(t *testing.T) {
	evil := "x\" level=ERROR code=forged\n\x1b[31m<script>\u202e\xff" + strings.Repeat("A", 1<<20)
	for name, handler := range map[string]func(io.Writer) slog.Handler{
		"text":  func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		"json":  func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
		"naive": func(w io.Writer) slog.Handler { return naive{w} },
	} {
		var text bytes.Buffer
		log, err := telemetry.NewLog(slog.New(handler(&text)))
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

// naive writes values as they are.
type naive struct{ w io.Writer }

func (naive) Enabled(context.Context, slog.Level) bool { return true }
func (n naive) WithAttrs([]slog.Attr) slog.Handler     { return n }
func (n naive) WithGroup(string) slog.Handler          { return n }
func (n naive) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool { fmt.Fprint(n.w, a.Key, "=", a.Value.String(), " "); return true })
	fmt.Fprintln(n.w)
	return nil
}

// No denial is told twice or lost, from however many goroutines.
func TestLogFromManyGoroutines(t *testing.T) {
	var mu sync.Mutex
	var sum int64
	log, err := telemetry.NewLog(slog.New(counter(func(count int64) {
		mu.Lock()
		defer mu.Unlock()
		sum += count
	})), telemetry.LogKeys(4), telemetry.LogInterval(time.Millisecond))
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 2000 {
				log.Observe(denial(uint64(i%9) + 1))
			}
		})
	}
	wg.Wait()
	log.Flush()
	require.EqualValues(t, 8*2000, sum)
}

// counter is a handler that wants the counts only.
type counter func(int64)

func (counter) Enabled(context.Context, slog.Level) bool { return true }
func (c counter) WithAttrs([]slog.Attr) slog.Handler     { return c }
func (c counter) WithGroup(string) slog.Handler          { return c }
func (c counter) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "count" {
			c(a.Value.Int64())
		}
		return true
	})
	return nil
}

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
