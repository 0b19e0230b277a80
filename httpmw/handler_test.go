package httpmw_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// events collects the events of an observer.
type events []telemetry.Event

func (e *events) observe() httpmw.Option {
	return httpmw.WithObserver(func(ev telemetry.Event) { *e = append(*e, ev) })
}

// The event contains the answer that the client received.
func TestEventTellsWhatIsSent(t *testing.T) {
	for _, row := range []struct {
		name string
		l    algo.Limiter
		opts []httpmw.Option
		r    *http.Request
		want telemetry.Sent
	}{
		{"admitted", admitting(), nil, get(), telemetry.Sent{Policy: `"p";q=10;w=1`, Limit: `"p";r=7;t=1`}},
		{"denied", denying(algo.Quota, 3*time.Second), nil, get(),
			telemetry.Sent{Policy: `"p";q=10;w=1`, Limit: `"p";r=0;t=1`, RetryAfter: 3 * time.Second}},
		{"never", denying(algo.Never, algo.Forever), nil, get(), telemetry.Sent{Policy: `"p";q=10;w=1`, Limit: `"p";r=0;t=1`}},
		{"legacy", admitting(), []httpmw.Option{httpmw.WithHeaders(httpmw.Legacy)}, get(),
			telemetry.Sent{Policy: "10", Limit: "7", Reset: "0"}},
		{"none", denying(algo.Overload, time.Second), []httpmw.Option{httpmw.WithHeaders(httpmw.None)}, get(),
			telemetry.Sent{RetryAfter: time.Second}},
		{"failed", &scripted{err: errors.New("down")}, nil, get(), telemetry.Sent{RetryAfter: time.Second}},
		{"on trial", algo.Shadow(denying(algo.Quota, time.Second)), nil, get(), telemetry.Sent{}},
	} {
		var seen events
		w := serve(httpmw.Limit(row.l, key("k"), append(row.opts, seen.observe(), httpmw.WithName("p"))...)(ok), row.r)
		require.Len(t, seen, 1, row.name)
		sent := seen[0].Sent
		if sent.RetryAfter > row.want.RetryAfter {
			sent.RetryAfter -= time.Second // rounded up, with jitter
		}
		require.Equal(t, row.want, sent, row.name)
		requireSent(t, w.Result(), seen[0])
	}
}

// requireSent compares an event with the answer that the client got.
func requireSent(t *testing.T, got *http.Response, e telemetry.Event) {
	t.Helper()
	policy, limit := policyField, limitField
	if e.Sent.Reset != "" {
		policy, limit = "X-RateLimit-Limit", "X-RateLimit-Remaining"
	}
	require.Equal(t, got.Header.Get(policy), e.Sent.Policy)
	require.Equal(t, got.Header.Get(limit), e.Sent.Limit)
	require.Equal(t, got.Header.Get("X-RateLimit-Reset"), e.Sent.Reset)
	seconds, _ := strconv.Atoi(got.Header.Get("Retry-After"))
	require.Equal(t, time.Duration(seconds)*time.Second, e.Sent.RetryAfter)
	if e.Status != 0 {
		require.Equal(t, got.StatusCode, e.Status)
	}
}

// The event of each of several policies has its own items of the one line, and
// the status and Retry-After that all of them share.
func TestEventsOfSeveral(t *testing.T) {
	trial := httpmw.Policy{Name: "trial", Limiter: algo.Shadow(denying(algo.Quota, time.Second)), Key: key("k")}
	roomy := httpmw.Policy{Name: "roomy", Limiter: bucket(t, algo.PerSecond(10)), Key: key("k")}
	tight := httpmw.Policy{Name: "tight", Limiter: bucket(t, algo.PerMinute(1)), Key: key("k")}
	full := httpmw.Policy{Name: "full", Limiter: newSlots(0), Key: key("k")}
	var seen events
	h := httpmw.Limits([]httpmw.Policy{trial, roomy, tight}, seen.observe())(ok)
	require.Equal(t, 200, serve(h, get()).Code)
	require.Len(t, seen, 3)
	require.Equal(t, telemetry.Sent{}, seen[0].Sent)
	require.Equal(t, algo.Quota, seen[0].Decision.Trial)
	require.Equal(t, telemetry.Sent{Policy: `"roomy";q=10;w=1`, Limit: `"roomy";r=9;t=1`}, seen[1].Sent)
	require.Equal(t, telemetry.Sent{Policy: `"tight";q=1;w=60`, Limit: `"tight";r=0;t=60`}, seen[2].Sent)
	require.Equal(t, algo.Admitted, seen[2].Decision.Trial)

	seen = nil
	w := serve(httpmw.Limits([]httpmw.Policy{roomy, full, tight}, seen.observe())(ok), get())
	require.Equal(t, []string{"full", "tight"}, []string{seen[0].Policy, seen[1].Policy})
	retry, err := strconv.Atoi(w.Result().Header.Get("Retry-After"))
	require.NoError(t, err)
	for _, e := range seen {
		require.Equal(t, w.Code, e.Status)
		require.Equal(t, time.Duration(retry)*time.Second, e.Sent.RetryAfter)
	}
	require.Equal(t, `"full";q=0;qu="concurrent-requests"`, seen[0].Sent.Policy)
	require.Equal(t, `"tight";q=1;w=60`, seen[1].Sent.Policy)
}

// A request that is denied for lack of a key has no fields of its own; the
// fields of another limit on the request are not taken for them.
func TestEventWithoutAKey(t *testing.T) {
	var seen events
	inner := httpmw.Limit(admitting(), failingKey(keyfunc.ErrNoKey), httpmw.WithMissingKey(http.StatusUnauthorized), seen.observe())(ok)
	w := serve(httpmw.Limit(admitting(), key("k"), httpmw.WithName("outer"))(inner), get())
	require.Equal(t, 401, w.Code)
	require.Equal(t, telemetry.Sent{}, seen[0].Sent)
	require.False(t, seen[0].At.IsZero())
	require.Zero(t, seen[0].Waited)
}

func TestEventTellsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(t, algo.Every(10*time.Second), algo.MaxWait(time.Minute))
		start := time.Now()
		var seen events
		for _, h := range []http.Handler{
			httpmw.Limit(l, key("k"), seen.observe())(ok),
			httpmw.Limits([]httpmw.Policy{
				{Name: "a", Limiter: l, Key: key("k")}, {Name: "b", Limiter: admitting(), Key: key("k")},
			}, seen.observe())(ok),
		} {
			require.Equal(t, 200, serve(h, get()).Code)
		}
		require.Len(t, seen, 3)
		require.Zero(t, seen[0].Waited)
		for _, e := range seen[1:] {
			require.Equal(t, 10*time.Second, e.Waited)
			require.Equal(t, start.Add(10*time.Second), e.At)
			require.False(t, e.Client)
		}
	})
}

func TestObserverAllocations(t *testing.T) {
	ip := keyfunc.ClientIP()
	observe := httpmw.WithObserver(func(telemetry.Event) {})
	several := func(opts ...httpmw.Option) http.Handler {
		return httpmw.Limits([]httpmw.Policy{
			{Name: "a", Limiter: roomy(t), Key: ip}, {Name: "b", Limiter: roomy(t), Key: ip},
		}, opts...)(bare)
	}
	for _, row := range []struct {
		name          string
		unset, with   http.Handler
		allocsOfUnset float64
	}{
		{"headers", httpmw.Limit(roomy(t), ip)(bare), httpmw.Limit(roomy(t), ip, observe)(bare), 2},
		{"denied", httpmw.Limit(spent(t), ip)(bare), httpmw.Limit(spent(t), ip, observe)(bare), 4},
		{"several", several(), several(observe), 4},
	} {
		for _, h := range []http.Handler{row.unset, row.with} {
			w, r := newSink(), get()
			require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
				h.ServeHTTP(w, r)
				w.reset()
			}), row.allocsOfUnset, row.name)
		}
	}
}

// BenchmarkObserver measures an observer that does nothing.
func BenchmarkObserver(b *testing.B) {
	ip := keyfunc.ClientIP()
	none, observe := httpmw.WithHeaders(httpmw.None), httpmw.WithObserver(func(telemetry.Event) {})
	for _, row := range []struct {
		name string
		h    http.Handler
	}{
		{"none/unset", httpmw.Limit(roomy(b), ip, none)(bare)},
		{"none/set", httpmw.Limit(roomy(b), ip, none, observe)(bare)},
		{"headers/unset", httpmw.Limit(roomy(b), ip)(bare)},
		{"headers/set", httpmw.Limit(roomy(b), ip, observe)(bare)},
		{"denied/unset", httpmw.Limit(spent(b), ip)(bare)},
		{"denied/set", httpmw.Limit(spent(b), ip, observe)(bare)},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			w, r := newSink(), get()
			for b.Loop() {
				row.h.ServeHTTP(w, r)
				w.reset()
			}
		})
	}
}

// An observer that panics leaves no slot behind, of several policies either.
func TestC1_PanickingObserver(t *testing.T) {
	one, two := newSlots(1), newSlots(1)
	boom := httpmw.WithObserver(func(telemetry.Event) { panic("observer") })
	several := httpmw.Limits([]httpmw.Policy{
		{Name: "one", Limiter: one, Key: key("k")}, {Name: "two", Limiter: two, Key: key("k")},
	}, boom)(unreachable(t))
	for range 3 {
		require.PanicsWithValue(t, "observer", func() { serve(several, get()) })
	}
	for _, l := range []*slots{one, two} {
		require.Zero(t, l.inFlight())
		require.Equal(t, 3, l.released(algo.Failed), "each was asked and has let go")
	}
}
