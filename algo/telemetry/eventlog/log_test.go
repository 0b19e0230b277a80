package eventlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/algo/telemetry/eventlog"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/keyfunc"
)

var quota = algo.Decision{Reason: algo.Quota, Limit: 1, RetryAfter: time.Second}

// denial returns a denied request of a key.
func denial(key uint64) telemetry.Event {
	return telemetry.Event{
		At: time.Now(), Policy: "p", Result: telemetry.Denied, Decision: quota, Status: 429, Cost: 1, KeyHash: key,
		Sent: telemetry.Sent{RetryAfter: 2 * time.Second},
	}
}

// journal is a log with its output.
type journal struct {
	*eventlog.Log
	text bytes.Buffer
}

func newJournal(t *testing.T, opts ...eventlog.Option) *journal {
	t.Helper()
	j := new(journal)
	log, err := eventlog.New(slog.New(slog.NewJSONHandler(&j.text, &slog.HandlerOptions{Level: slog.LevelDebug})), opts...)
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

// The first denial of a key is written at once, the others with the next line
// or after the interval.
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
		require.Empty(t, j.take(t), "no event comes to write it")
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
		j.Observe(telemetry.Event{At: at, Policy: "p", Decision: algo.Decision{Allowed: true, Source: algo.SourceTrial, Trial: algo.Quota}, KeyHash: 7})
		j.Observe(telemetry.Event{At: at, Policy: "p", Decision: algo.Decision{Allowed: true, Source: algo.SourceFallback}, KeyHash: 7})
		j.Observe(telemetry.Event{At: at, Policy: "p", Result: telemetry.FailedOpen, Err: fmt.Errorf("wrapped: %w", broken), KeyHash: 7})
		j.Observe(telemetry.Event{At: at, Policy: "p", Result: telemetry.FailedClosed, Err: broken, KeyHash: 8})
		j.Observe(telemetry.Event{At: at, Policy: "p", Result: telemetry.Canceled, KeyHash: 7})
		j.Observe(telemetry.Event{At: at, Policy: "p", Decision: algo.Decision{Allowed: true}, KeyHash: 7})
	}
	require.NotContains(t, j.text.String(), "hunter2")
	require.Contains(t, j.text.String(), `"error":"*errors.errorString"`)
	require.Equal(t, []string{"shadowed p 7 1", "fallback p  1", "failed-open p  1", "failed-closed p  1"}, j.take(t))
	j.Flush()
	require.ElementsMatch(t, []string{"shadowed p 7 2", "fallback p  2", "failed-open p  2", "failed-closed p  2"}, j.take(t))
}

// A line says for what a limiter denied, the one with a count for what it did at last.
func TestLogOfACause(t *testing.T) {
	j := newJournal(t)
	full := algo.Must(adaptive.New(adaptive.Fixed(1)))
	for range 3 {
		lease, err := full.Acquire(t.Context(), "", 1)
		require.NoError(t, err)
		if !lease.Allowed {
			j.Observe(telemetry.Event{At: time.Now(), Policy: "p", Result: telemetry.Denied, Decision: lease.Decision})
		}
	}
	j.Flush()
	require.Equal(t, 2, strings.Count(j.text.String(), `"cause":"limit"`))
}

// A million keys need no more slots and lines than there are.
func TestLogIsBounded(t *testing.T) {
	const slots = 16
	keys := cases.Count(1_000_000, 1_000_000)
	j := newJournal(t, eventlog.Keys(slots))
	at := time.Now()
	e := denial(0)
	e.At = at
	counted := 0
	for key := range uint64(keys) {
		e.KeyHash = key + 1
		j.Observe(e)
	}
	lines := j.take(t)
	require.Len(t, lines, slots+1)
	require.Equal(t, "others   1", lines[slots])
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		e.KeyHash++
		counted++
		j.Observe(e)
	}), "counting allocates nothing")
	require.Empty(t, j.take(t))
	j.Flush()
	require.Equal(t, []string{fmt.Sprint("others   ", keys-slots-1+counted)}, j.take(t), "no denial is lost")
}

// After the interval the slots are free again, although each event frees at most
// two.
func TestLogRecoversFromAFlood(t *testing.T) {
	j := newJournal(t, eventlog.Keys(16), eventlog.Interval(time.Second))
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
		taken := j.take(t)
		require.LessOrEqual(t, len(taken), 5)
		lines = append(lines, taken...)
	}
	require.Contains(t, strings.Join(lines, "\n"), "denied p 3f8 1", "a slot of the flood is free")
	require.LessOrEqual(t, len(lines), 2*(16+1))
}

// No denial is written twice or lost, with many goroutines.
func TestLogFromManyGoroutines(t *testing.T) {
	var mu sync.Mutex
	var sum int64
	log, err := eventlog.New(slog.New(counter(func(count int64) {
		mu.Lock()
		defer mu.Unlock()
		sum += count
	})), eventlog.Keys(4), eventlog.Interval(time.Millisecond))
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

// counter is a handler that reads only the counts.
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

// A request without the identity that its limit counts by is not a key among others.
func TestLogNamesTheMissingKey(t *testing.T) {
	for name, missing := range map[string][]httpmw.Option{"shared": nil, "denied": {httpmw.WithMissingKey(401)}} {
		j := newJournal(t)
		handler := httpmw.Limit(algo.Must(algo.NewTokenBucket(algo.PerHour(1))), keyfunc.Header("X-User"),
			append(missing, httpmw.WithObserver(j.Observe))...)(http.NotFoundHandler())
		for range 2 {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}
		require.Contains(t, j.text.String(), `"key":"~missing"`, name)
	}
}

// BenchmarkLog measures an event that writes nothing.
func BenchmarkLog(b *testing.B) {
	log, err := eventlog.New(slog.New(slog.DiscardHandler))
	require.NoError(b, err)
	debug, err := eventlog.New(slog.New(slog.NewTextHandler(io.Discard, nil)))
	require.NoError(b, err)
	admitted := telemetry.Event{At: time.Now(), Policy: "p", Decision: algo.Decision{Allowed: true}, KeyHash: 1}
	for _, row := range []struct {
		name string
		log  *eventlog.Log
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

// A client is denied a hundred times, and the log has two lines.
func ExampleNew() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == "time" || a.Key == "key" || a.Key == "retry_after" { // they differ from run to run
				return slog.Attr{}
			}
			return a
		},
	}))
	denials, err := eventlog.New(logger, eventlog.Interval(time.Minute))
	if err != nil {
		panic(err)
	}
	users := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	handler := httpmw.Limit(users, keyfunc.ClientIP(), httpmw.WithName("users"),
		httpmw.WithObserver(denials.Observe))(http.NotFoundHandler())

	for range 101 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	denials.Flush() // when the server has stopped
	// Output:
	// level=INFO msg="requests denied" code=telemetry.denied policy=users transport=http client=false reason=quota count=1 status=429
	// level=INFO msg="requests denied" code=telemetry.denied policy=users transport=http client=false reason=quota count=99
}
