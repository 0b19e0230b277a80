package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := httpmw.Limit(bucket(t, algo.PerMinute(2)), keyfunc.Header("X-User"))(ok)
		for _, want := range []int{200, 200, 429, 429} {
			require.Equal(t, want, serve(h, get("X-User", "a")).Code)
		}
		require.Equal(t, 200, serve(h, get("X-User", "b")).Code, "another key, another bucket")
		time.Sleep(30 * time.Second)
		require.Equal(t, 200, serve(h, get("X-User", "a")).Code)
	})
}

func TestDelayIsSleptOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(t, algo.PerSecond(1), algo.MaxWait(time.Minute))
		h := httpmw.Limit(l, key("k"))(ok)
		start := time.Now()
		require.Equal(t, `"1-per-second";r=0;t=1`, serve(h, get()).Result().Header.Get(limitField))
		require.Equal(t, `"1-per-second";r=0;t=1`, serve(h, get()).Result().Header.Get(limitField), "t counts from the answer")
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestDelayThatOutlastsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events []telemetry.Event
		l := bucket(t, algo.Every(10*time.Second), algo.MaxWait(time.Minute))
		h := httpmw.Limit(l, key("k"), httpmw.WithObserver(func(e telemetry.Event) { events = append(events, e) }))(ok)
		require.Equal(t, 200, serve(h, get()).Code)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		w := serve(h, get().WithContext(ctx))
		require.Equal(t, 429, w.Code)
		require.Zero(t, time.Since(start), "fails at once")
		require.Contains(t, []string{"10", "11", "12"}, w.Result().Header.Get("Retry-After"))
		require.Equal(t, telemetry.Denied, events[1].Result)
		serve(h, get())
		require.Equal(t, 10*time.Second, time.Since(start), "the charge was given back")
	})
}

// While a request waits its client leaves: it gets nothing, is counted as
// canceled and stays uncharged.
func TestGoneWhileDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last telemetry.Event
		l := bucket(t, algo.Every(10*time.Second), algo.MaxWait(time.Minute))
		observe := httpmw.WithObserver(func(e telemetry.Event) { last = e })
		serve(httpmw.Limit(l, key("k"))(ok), get())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		w := serve(httpmw.Limit(l, key("k"), observe)(unreachable(t)), get().WithContext(ctx))
		require.Equal(t, time.Second, time.Since(start))
		require.Empty(t, w.Body.String())
		require.Empty(t, w.Result().Header)
		require.NotEqual(t, 200, w.Code, "a handler around this one must not take it for a success")
		require.Equal(t, telemetry.Canceled, last.Result)
		require.ErrorIs(t, last.Err, context.Canceled)
		serve(httpmw.Limit(l, key("k"))(ok), get())
		require.Equal(t, 10*time.Second, time.Since(start), "the charge was given back")
	})
}

func TestGoneWhenDenied(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var last telemetry.Event
	w := serve(httpmw.Limit(denying(algo.Quota, 1), key("k"), httpmw.WithDenied(unreachable(t)),
		httpmw.WithObserver(func(e telemetry.Event) { last = e }))(unreachable(t)), get().WithContext(ctx))
	require.Empty(t, w.Body.String())
	require.Equal(t, telemetry.Canceled, last.Result)
}

func TestMissingKey(t *testing.T) {
	noKey := failingKey(fmt.Errorf("wrapped: %w", keyfunc.ErrNoKey))
	for _, row := range []struct {
		name   string
		opts   []httpmw.Option
		status int
		keys   []string
	}{
		{"default", nil, 200, []string{"~missing"}},
		{"Shared", []httpmw.Option{httpmw.WithMissingKey(httpmw.Shared)}, 200, []string{"~missing"}},
		{"Deny", []httpmw.Option{httpmw.WithMissingKey(http.StatusUnauthorized)}, 401, nil},
		{"Skip", []httpmw.Option{httpmw.WithMissingKey(httpmw.Skip)}, 200, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := admitting()
			w := serve(httpmw.Limit(l, noKey, row.opts...)(ok), get())
			require.Equal(t, row.status, w.Code)
			require.Equal(t, row.keys, l.keys)
			if row.status == 429 {
				require.Empty(t, w.Result().Header.Values("Retry-After"), "waiting does not help")
			}
		})
	}
}

func TestErrors(t *testing.T) {
	secret := errors.New("dial 10.1.2.3: secret")
	failing := func() *scripted { l := admitting(); l.err = secret; return l }
	open := httpmw.WithFailOpen()
	for _, row := range []struct {
		name   string
		l      algo.Limiter
		key    keyfunc.HTTP
		opts   []httpmw.Option
		status int
		result telemetry.Result
	}{
		{"limiter, default", failing(), key("k"), nil, 503, telemetry.FailedClosed},
		{"limiter, open", failing(), key("k"), []httpmw.Option{open}, 200, telemetry.FailedOpen},
		{"key, closed", admitting(), failingKey(secret), nil, 503, telemetry.FailedClosed},
		{"key, open", admitting(), failingKey(secret), []httpmw.Option{open}, 200, telemetry.FailedOpen},
	} {
		t.Run(row.name, func(t *testing.T) {
			var last telemetry.Event
			observe := httpmw.WithObserver(func(e telemetry.Event) { last = e })
			w := serve(httpmw.Limit(row.l, row.key, append(row.opts, observe)...)(ok), get())
			require.Equal(t, row.status, w.Code)
			require.NotContains(t, w.Body.String(), "secret")
			require.Equal(t, row.result, last.Result)
			require.ErrorIs(t, last.Err, secret)
			if row.status == 503 {
				require.Equal(t, capacityProblem, problemOf(t, w).Type)
				require.Contains(t, []string{"1", "2"}, w.Result().Header.Get("Retry-After"))
			}
		})
	}
}

// A time that has run out is no reason to let a request pass.
func TestFailOpenIsNotForExpiredRequests(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	l := admitting()
	l.err = context.DeadlineExceeded
	h := httpmw.Limit(l, key("k"), httpmw.WithFailOpen())(unreachable(t))
	require.Equal(t, 503, serve(h, get().WithContext(ctx)).Code)
}

// A client that goes away while the limiter waits, in its queue for example,
// is not a failure, open or closed.
func TestGoneWhileTheLimiterWaits(t *testing.T) {
	for _, opts := range [][]httpmw.Option{nil, {httpmw.WithFailOpen()}} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l := admitting()
		l.err = context.Canceled
		var last telemetry.Event
		w := serve(httpmw.Limit(l, key("k"), append(opts, httpmw.WithObserver(func(e telemetry.Event) { last = e }))...)(
			unreachable(t)), get().WithContext(ctx))
		require.Empty(t, w.Body.String())
		require.Equal(t, telemetry.Canceled, last.Result)
	}
}

func TestCost(t *testing.T) {
	l := admitting()
	cost := httpmw.WithCost(func(r *http.Request) int64 { return r.ContentLength })
	h := httpmw.Limit(l, key("k"), cost)(ok)
	r := get()
	r.ContentLength = 42
	require.Equal(t, 200, serve(h, r).Code)
	require.Equal(t, []int64{42}, l.costs)
	ask(l)
	require.Equal(t, []int64{42, 1}, l.costs, "1 without a cost function")
}

// A negative cost neither mints nor lets the request pass for free, nor does
// it crash: the length of a chunked body is -1, so clients can provoke it.
func TestNegativeCost(t *testing.T) {
	l := bucket(t, algo.PerHour(5))
	cost := httpmw.WithCost(func(r *http.Request) int64 { return r.ContentLength })
	for _, opts := range [][]httpmw.Option{nil, {httpmw.WithFailOpen()}} {
		var last telemetry.Event
		h := httpmw.Limit(l, key("k"), append(opts, cost, httpmw.WithObserver(func(e telemetry.Event) { last = e }))...)(unreachable(t))
		for range 10 {
			r := get()
			r.ContentLength = -1
			require.Equal(t, 503, serve(h, r).Code)
			require.ErrorIs(t, last.Err, algo.ErrCost)
		}
	}
	for range 5 {
		require.Equal(t, 200, ask(l).Code)
	}
	require.Equal(t, 429, ask(l).Code)
}

func TestSkip(t *testing.T) {
	l := denying(algo.Quota, 1)
	w := ask(l, httpmw.WithSkip(func(*http.Request) bool { return true }))
	require.Equal(t, 200, w.Code)
	require.Empty(t, l.keys)
	require.Empty(t, w.Result().Header.Values(limitField))
	require.Equal(t, 429, ask(l, httpmw.WithSkip(func(*http.Request) bool { return false })).Code)
}

func TestObserver(t *testing.T) {
	var events []telemetry.Event
	observe := httpmw.WithObserver(func(e telemetry.Event) { events = append(events, e) })
	ask(admitting(), observe, httpmw.WithName("a"))
	ask(denying(algo.Overload, 1), observe, httpmw.WithName("b"))
	require.Len(t, events, 2)
	require.Positive(t, events[0].Waited)
	require.NotNil(t, events[0].Context)
	require.Equal(t, telemetry.Event{
		Context: events[0].Context, At: events[0].At, Policy: "a", Result: telemetry.Allowed, Decision: admitting().decision, Waited: events[0].Waited,
		Cost: 1, KeyHash: events[1].KeyHash, Sent: events[0].Sent,
	}, events[0])
	require.Equal(t, telemetry.Denied, events[1].Result)
	require.Equal(t, 503, events[1].Status)
	require.Equal(t, algo.Overload, events[1].Decision.Reason)
	require.NotZero(t, events[0].KeyHash)
	serve(httpmw.Limit(admitting(), key("other"), observe)(ok), get())
	require.NotEqual(t, events[0].KeyHash, events[2].KeyHash)
	require.Equal(t, "failed-closed", telemetry.FailedClosed.String())
	require.Equal(t, "unknown", telemetry.Result(99).String())
}

// An observer that panics leaves no slot behind.
func TestPanicsOfOptions(t *testing.T) {
	l := newSlots(1)
	boom := func(*http.Request) int64 { panic("cost") }
	for _, o := range []httpmw.Option{
		httpmw.WithObserver(func(telemetry.Event) { panic("observer") }), httpmw.WithCost(boom),
	} {
		require.Panics(t, func() { ask(l, o) })
		require.Zero(t, l.inFlight())
	}
}

// The body is the handler's: no key, cost or denial reads it.
func TestBodyIsNotRead(t *testing.T) {
	body := &counting{}
	r := httptest.NewRequest(http.MethodPost, "/", body)
	serve(httpmw.Limit(denying(algo.Quota, 1), keyfunc.ClientIP())(ok), r)
	require.Zero(t, body.reads)
}

type counting struct{ reads int }

func (c *counting) Read([]byte) (int, error) { c.reads++; return 0, io.EOF }
