package metered_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/metered"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/keyfunc"
)

// letters costs a unit for each x.
func letters(chunk []byte) int64 { return int64(strings.Count(string(chunk), "x")) }

// meterOf starts a meter on a bucket of a unit a second.
func meterOf(t *testing.T, burst, n, block int64) (*meter.Meter, *algo.RateLimiter) {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(burst)))
	m, err := meter.Start(context.Background(), l, "k", n, block)
	require.NoError(t, err)
	return m, l
}

func remaining(t *testing.T, l algo.Limiter, key string) int64 {
	lease, err := l.Acquire(context.Background(), key, 0)
	require.NoError(t, err)
	return lease.Remaining
}

func key(*http.Request) (string, error) { return "k", nil }

// logged returns the lines that f logs.
func logged(t *testing.T, f func()) string {
	var b strings.Builder
	log.SetOutput(&b)
	defer log.SetOutput(os.Stderr)
	f()
	return b.String()
}

// eventRecorder returns a recorder of server-sent events.
func eventRecorder() *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Type", "text/event-stream")
	return rec
}

// Each denial of a stream has its defined end.
func TestWriterEnds(t *testing.T) {
	const stream = "data: xx\n\ndata: xxx\n\ndata: x\n\n"
	for _, row := range []struct {
		name     string
		onDenied metered.OnDenied
		most     int64
		sent     string
		took     time.Duration
		used     int64
		stops    bool
	}{
		{"stop", metered.StopStream, 0, "data: xx\n\ndata: xxx\n\n", 0, 5, true},
		{"stop, the most is known", metered.StopStream, 3, "data: xx\n\n", 0, 2, true},
		{"hold", metered.HoldStream, 0, stream, 2 * time.Second, 6, false},
		{"hold, the most is known", metered.HoldStream, 3, stream, 5 * time.Second, 6, false},
		{"finish", metered.FinishStream, 0, stream, 0, 6, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, l := meterOf(t, 4, 2, 0)
				rec, begun := eventRecorder(), time.Now()
				w := metered.New(context.Background(), rec, metered.Metering{Meter: m, Units: letters, Most: row.most, OnDenied: row.onDenied})
				n, err := io.WriteString(w, stream)
				require.NoError(t, w.Close())
				require.Equal(t, row.sent, rec.Body.String())
				require.Equal(t, len(row.sent), n)
				require.Equal(t, row.took, time.Since(begun))
				require.Equal(t, row.used, m.Used())
				require.Equal(t, 4-row.used+int64(row.took/time.Second), remaining(t, l, "k")-owed(t, l))
				var denied *metered.Denied
				require.Equal(t, row.stops, errors.As(err, &denied))
				if row.stops {
					require.Equal(t, algo.Quota, denied.Decision.Reason)
					require.ErrorContains(t, err, "the limit stopped the response (quota): retry after 1s")
					_, again := w.Write([]byte("data: x\n\n"))
					require.Equal(t, err, again)
					require.Equal(t, row.sent, rec.Body.String())
				}
			})
		})
	}
}

// owed returns the debt of the key in a bucket of a unit a second.
func owed(t *testing.T, l algo.Limiter) int64 {
	lease, err := l.Acquire(context.Background(), "k", 1)
	require.NoError(t, err)
	defer lease.Release(algo.Canceled)
	return int64(max(lease.RetryAfter-time.Second, 0) / time.Second)
}

// A chunk that is written in parts is charged once, at its end, and sent at
// once.
func TestWriterInParts(t *testing.T) {
	m, _ := meterOf(t, 100, 10, 10)
	rec := eventRecorder()
	var seen []string
	w := metered.New(context.Background(), rec, metered.Metering{Meter: m, Units: func(chunk []byte) int64 {
		seen = append(seen, string(chunk))
		return letters(chunk)
	}})
	for _, part := range []string{"data: x", "x\n", "\ndata: x\n\ndata", ": xxx"} {
		_, err := w.Write([]byte(part))
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(rec.Body.String(), part))
	}
	require.EqualValues(t, 3, m.Used())
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	require.EqualValues(t, 6, m.Used(), "the unfinished event too, once")
	require.Equal(t, []string{"data: xx\n\n", "data: x\n\n", "data: xxx"}, seen)
}

// flushes records the sent part at each Flush.
type flushes struct {
	*httptest.ResponseRecorder
	sent []string
}

func (f *flushes) Flush() { f.sent = append(f.sent, f.Body.String()) }

// HoldStream sends the admitted chunks before it waits, and gives up if the wait
// is in vain.
func TestWriterHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := meterOf(t, 4, 2, 0)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		rec := &flushes{ResponseRecorder: eventRecorder()}
		w := metered.New(ctx, rec, metered.Metering{Meter: m, Units: letters, OnDenied: metered.HoldStream})
		_, err := w.Write([]byte("data: xxxx\n\ndata: x\n\n"))
		require.NoError(t, err)
		require.Equal(t, []string{"data: xxxx\n\n"}, rec.sent, "before the wait")
		n, err := w.Write([]byte("data: xxx\n\n"))
		require.ErrorIs(t, err, algo.ErrWait, "3 s, of which 2 are left")
		require.Zero(t, n)
		require.EqualValues(t, 5, m.Used())

		m, _ = meterOf(t, 4, 2, 0)
		w = metered.New(ctx, eventRecorder(), metered.Metering{Meter: m, Units: letters, OnDenied: metered.HoldStream})
		_, err = w.Write([]byte("data: xxxxxxx\n\n"))
		var denied *metered.Denied
		require.ErrorAs(t, err, &denied)
		require.Equal(t, algo.Never, denied.Decision.Reason)
	})
}

// TestS3_WriterMisuse: negative, absurd and late usage is defined, is logged
// once, and mints nothing.
func TestS3_WriterMisuse(t *testing.T) {
	metered.ResetWarnings()
	costs := map[byte]int64{'n': -7, 'm': math.MinInt64, 'a': 50, 'h': math.MaxInt64}
	metering := func(m *meter.Meter, most int64) metered.Metering {
		return metered.Metering{Meter: m, Most: most, OnDenied: metered.FinishStream, Units: func(c []byte) int64 { return costs[c[0]] }}
	}
	var m *meter.Meter
	var l *algo.RateLimiter
	says := logged(t, func() {
		m, l = meterOf(t, 100, 10, 0)
		w := metered.New(context.Background(), httptest.NewRecorder(), metering(m, 20))
		for _, c := range "nmnaa" {
			_, err := w.Write([]byte{byte(c)})
			require.NoError(t, err)
		}
	})
	require.EqualValues(t, 100, m.Used(), "the chunks above the maximum count in full")
	require.LessOrEqual(t, remaining(t, l, "k"), int64(0))
	require.LessOrEqual(t, strings.Count(says, "algo.negative_usage"), 1)
	require.Equal(t, 1, strings.Count(says, "metered.above_most"))
	m.Settle(90) // reported, then again, and then other usage
	m.Settle(10)
	m.Use(5)
	require.EqualValues(t, 10, remaining(t, l, "k"))

	m, l = meterOf(t, 100, 10, 0)
	w := metered.New(context.Background(), httptest.NewRecorder(), metering(m, 0))
	for range 3 {
		_, err := w.Write([]byte("h"))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.Zero(t, remaining(t, l, "k"))

	for _, bad := range []metered.Metering{
		{Units: letters}, {Meter: m}, {Meter: m, Units: letters, Most: -1}, {Meter: m, Units: letters, OnDenied: 3},
	} {
		require.Panics(t, func() { metered.New(context.Background(), httptest.NewRecorder(), bad) })
	}
}

// A panic of Units in an unfinished chunk leaves no reservation.
func TestWriterClosesAfterAPanic(t *testing.T) {
	m, l := meterOf(t, 10, 8, 0)
	w := metered.New(context.Background(), eventRecorder(), metered.Metering{Meter: m, Units: func([]byte) int64 { panic("units") }})
	_, err := io.WriteString(w, "data: a part")
	require.NoError(t, err)
	require.Panics(t, func() { _ = w.Close() })
	require.Equal(t, int64(10), remaining(t, l, "k"), "the reserved units come back")
}

// An error of the limiter stops the stream, or does not.
func TestWriterWithoutAnAnswer(t *testing.T) {
	away := errors.New("away")
	for onDenied, stops := range map[metered.OnDenied]bool{metered.StopStream: true, metered.HoldStream: true, metered.FinishStream: false} {
		l := &failing{}
		m, err := meter.Start(context.Background(), l, "k", 1, 0)
		require.NoError(t, err)
		l.err = away
		w := metered.New(context.Background(), eventRecorder(), metered.Metering{Meter: m, Units: letters, OnDenied: onDenied})
		_, err = w.Write([]byte("data: xx\n\n"))
		require.Equal(t, stops, errors.Is(err, away))
	}
}

// failing is a limiter that admits, or fails with err.
type failing struct{ err error }

func (l *failing) Acquire(context.Context, string, int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision{Allowed: true}, nil, algo.Handle{}), l.err
}

// whileThere is a limiter that gives up a charge when the context ends.
type whileThere struct{ algo.Limiter }

func (l whileThere) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	if err := ctx.Err(); err != nil {
		return algo.Lease{}, err
	}
	return l.Limiter.Acquire(ctx, key, n)
}

// A client that hangs up is charged for the part that was sent.
func TestWriterChargesAClientThatHangsUp(t *testing.T) {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
	ctx, hangUp := context.WithCancel(context.Background())
	m, err := meter.Start(ctx, whileThere{l}, "k", 2, 20)
	require.NoError(t, err)
	w := metered.New(ctx, eventRecorder(), metered.Metering{Meter: m, Units: letters})
	hangUp()
	_, err = io.WriteString(w, "data: xxxxx\n\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.EqualValues(t, 95, remaining(t, l, "k"))
}

// The handler's meter goes on with the charge of the middleware: by plain middleware,
// of several policies, and not at all where the request passes unlimited.
func TestMeterFrom(t *testing.T) {
	serve := func(mw func(http.Handler) http.Handler) string {
		rec := httptest.NewRecorder()
		mw(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-ndjson")
			m := meter.From(r.Context(), "tokens", -1)
			out := metered.New(r.Context(), w, metered.Metering{Meter: m, Units: letters})
			for range 10 {
				if _, err := io.WriteString(out, "xxxxx\n"); err != nil {
					break
				}
			}
			_ = out.Close()
		})).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
		return rec.Body.String()
	}
	four := func(int64) func(*http.Request) int64 { return func(*http.Request) int64 { return 4 } }
	opts := []httpmw.Option{httpmw.WithLeaseInContext()}
	requests := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
	for name, limit := range map[string]func(l algo.Limiter) func(http.Handler) http.Handler{
		"one": func(l algo.Limiter) func(http.Handler) http.Handler {
			return httpmw.Limit(l, key, append(opts, httpmw.WithName("tokens"), httpmw.WithCost(four(4)))...)
		},
		"several": func(l algo.Limiter) func(http.Handler) http.Handler {
			return httpmw.Limits([]httpmw.Policy{{Name: "requests", Limiter: requests, Key: key}, {Name: "tokens", Limiter: l, Key: key, Cost: four(4)}}, opts...)
		},
		"all of one unit": func(l algo.Limiter) func(http.Handler) http.Handler {
			day := algo.Must(algo.NewFixedWindow(algo.PerDay(1000)))
			return httpmw.Limits([]httpmw.Policy{{Name: "requests", Limiter: requests, Key: key}, {Name: "tokens", Limiter: algo.All(l, day), Key: key, Cost: four(4)}}, opts...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := algo.Must(algo.NewTokenBucket(algo.PerHour(18)))
			require.Equal(t, strings.Repeat("xxxxx\n", 4), serve(limit(l)), "15 units fit, and one chunk is debt")
			lease, err := l.Acquire(context.Background(), "k", 1)
			require.NoError(t, err)
			require.InDelta(t, float64(3*time.Hour/18), float64(lease.RetryAfter), float64(time.Minute))
		})
	}
	require.Len(t, serve(httpmw.Limit(algo.Unlimited(), key, append(opts, httpmw.WithName("tokens"))...)), 60)
	require.Len(t, serve(func(h http.Handler) http.Handler { return h }), 60)
}

// TestW1_MeteredStreams: streams that share a limit, and are written to in turns,
// together use no more than it has if the most of a chunk is known, and else at most a
// chunk each.
func TestW1_MeteredStreams(t *testing.T) {
	const most = 9
	rnd := rand.New(rand.NewPCG(98, 99))
	for range cases.Count(300, 30_000) {
		burst, known := 100+rnd.Int64N(400), int64(rnd.IntN(2)*most)
		l := algo.Must(algo.NewTokenBucket(algo.PerHour(1), algo.Burst(burst)))
		var used int64
		units := func([]byte) int64 {
			n := 1 + rnd.Int64N(most)
			used += n
			return n
		}
		var streams []*metered.Writer
		for range 1 + rnd.IntN(20) {
			m, err := meter.Start(context.Background(), l, "k", most, rnd.Int64N(30))
			require.NoError(t, err)
			if m.Allowed {
				streams = append(streams, metered.New(context.Background(), eventRecorder(), metered.Metering{Meter: m, Units: units, Most: known}))
			}
		}
		n := int64(len(streams))
		for len(streams) > 0 {
			i := rnd.IntN(len(streams))
			if _, err := io.WriteString(streams[i], "data: x\n\n"); err != nil {
				require.NoError(t, streams[i].Close())
				streams = slices.Delete(streams, i, i+1)
			}
		}
		excess := used - burst
		if known > 0 {
			require.LessOrEqual(t, excess, int64(0))
		}
		require.LessOrEqual(t, excess, n*most)
		require.GreaterOrEqual(t, excess, -n*2*most, "nearly all is used")
	}
}

// discard is a response writer without a recorder's buffer.
type discard struct{ h http.Header }

func (d discard) Header() http.Header       { return d.h }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

var delta = []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"}}]}\n\n")

func writing(t testing.TB) *metered.Writer {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(1e9)))
	m, err := meter.Start(context.Background(), l, "k", 0, 100)
	require.NoError(t, err)
	w := discard{http.Header{"Content-Type": {"text/event-stream"}}}
	return metered.New(context.Background(), w, metered.Metering{Meter: m, Units: func([]byte) int64 { return 1 }})
}

func TestWriterAllocatesNothing(t *testing.T) {
	w := writing(t)
	require.Zero(t, testing.AllocsPerRun(1000, func() { _, _ = w.Write(delta) }), "whole events")
	half := len(delta) / 2
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_, _ = w.Write(delta[:half])
		_, _ = w.Write(delta[half:])
	}), "events in parts")
}

func BenchmarkWriter(b *testing.B) {
	w := writing(b)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = w.Write(delta)
	}
}

// BenchmarkWriterFloor is the time of the meter and of the writer
// beneath.
func BenchmarkWriterFloor(b *testing.B) {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(1e9)))
	m := algo.Must(meter.Start(context.Background(), l, "k", 0, 100))
	var w io.Writer = discard{}
	b.ReportAllocs()
	for b.Loop() {
		if d, err := m.Reserve(context.Background(), 1); err == nil && d.Allowed {
			m.Use(1)
		}
		_, _ = w.Write(delta)
	}
}

// A stream of events is charged by its words, and ends where the limit is spent.
func ExampleNew() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(7)))
	limit := httpmw.Limit(tokens, keyfunc.ClientIP(), httpmw.WithName("tokens"), httpmw.WithLeaseInContext(),
		httpmw.WithCost(func(*http.Request) int64 { return 2 })) // the estimate
	words := func(event []byte) int64 { return int64(len(strings.Fields(string(event)))) - 1 }
	handler := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		m := meter.From(r.Context(), "tokens", 2)
		out := metered.New(r.Context(), w, metered.Metering{Meter: m, Units: words})
		defer func() { _ = out.Close() }()
		for _, text := range []string{"one two", "three four five", "six", "seven eight", "nine", "ten"} {
			if _, err := out.Write([]byte("data: " + text + "\n\n")); err != nil {
				fmt.Fprint(w, "event: limit\n\n")
				return
			}
			out.Flush()
		}
	}))

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Print(strings.ReplaceAll(w.Body.String(), "\n\n", "\n"))
	// Output:
	// data: one two
	// data: three four five
	// data: six
	// data: seven eight
	// event: limit
}
