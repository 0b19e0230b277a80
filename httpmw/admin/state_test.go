package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/keyfunc"
)

// event is a decision of policy p.
func event(r telemetry.Result, d algo.Decision) telemetry.Event {
	d.Allowed = r == telemetry.Allowed
	return telemetry.Event{At: time.Now(), Policy: "p", Result: r, Decision: d, Cost: 1}
}

// Each decision is counted once, as what it was.
func TestWhatDecisionsCountAs(t *testing.T) {
	for name, c := range map[string]struct {
		e       telemetry.Event
		columns []string
	}{
		"at once":                 {event(telemetry.Allowed, algo.Decision{}), []string{"admitted"}},
		"after a delay":           {event(telemetry.Allowed, algo.Decision{Delay: 1}), []string{"queued"}},
		"switched off":            {event(telemetry.Allowed, algo.Decision{Source: algo.SourceOff}), []string{"admitted"}},
		"let through on trial":    {event(telemetry.Allowed, algo.Decision{Source: algo.SourceTrial, Trial: algo.Quota}), []string{"shadowed"}},
		"denied":                  {event(telemetry.Denied, algo.Decision{Reason: algo.Quota}), []string{"denied"}},
		"failed":                  {event(telemetry.FailedOpen, algo.Decision{}), []string{"failed"}},
		"closed":                  {event(telemetry.FailedClosed, algo.Decision{}), []string{"failed"}},
		"given up":                {event(telemetry.Canceled, algo.Decision{}), []string{"failed"}},
		"by Redis":                {event(telemetry.Allowed, algo.Decision{Source: algo.SourceRemote}), []string{"admitted", "remote"}},
		"by a block":              {event(telemetry.Allowed, algo.Decision{Source: algo.SourceBlock}), []string{"admitted", "block"}},
		"by the deny cache":       {event(telemetry.Denied, algo.Decision{Source: algo.SourceDenyCache}), []string{"denied", "deny-cache"}},
		"without Redis":           {event(telemetry.Denied, algo.Decision{Source: algo.SourceFallback}), []string{"denied", "fallback"}},
		"from a source to come":   {event(telemetry.Allowed, algo.Decision{Source: 99}), []string{"admitted"}},
		"from a result to come":   {event(99, algo.Decision{}), []string{"failed"}},
		"waited in its own queue": {waited(algo.SourceLocal), []string{"queued"}},
		"waited for Redis":        {waited(algo.SourceRemote), []string{"admitted", "remote"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAdmin(t)
				c.e.At = time.Now()
				a.Observe(c.e)
				time.Sleep(time.Second)
				got := at(t, state(t, a), "policies", 0, "columns").(map[string]any)
				delete(got, "remote-us") // a sum, see TestTimeToRedis
				require.Len(t, got, len(c.columns))
				for _, column := range c.columns {
					require.Equal(t, []any{1.0}, got[column], column)
				}
			})
		})
	}
}

func waited(by algo.Source) telemetry.Event {
	e := event(telemetry.Allowed, algo.Decision{Source: by})
	e.Waited = 2 * time.Millisecond
	return e
}

// Seconds come in order, once each, and go after five minutes.
func TestSecondsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmin(t, admin.WithPolicy("p", bucket(t, algo.PerSecond(1))))
		var got []any
		since := 0.0
		for i := range 1000 {
			for range i % 3 {
				a.Observe(event(telemetry.Allowed, algo.Decision{}))
			}
			time.Sleep(time.Second)
			s := object(t, serve(a, local("GET", "api/state?since="+number(since), "")))
			require.Equal(t, max(since, 1), s["from"])
			since = s["to"].(float64)
			counts, ok := at(t, s, "policies", 0, "columns", "admitted").([]any)
			if !ok {
				counts = []any{0.0}
			}
			got = append(got, counts...)
		}
		require.Len(t, got, 1000)
		for i, n := range got {
			require.InDelta(t, i%3, n, 0)
		}
		all := state(t, a)
		require.Equal(t, 300.0, all["to"].(float64)-all["from"].(float64))
		require.InDelta(t, 300, total(t, all, "p", "admitted"), 1)
		time.Sleep(time.Hour)
		require.Zero(t, total(t, state(t, a), "p", "admitted"))
	})
}

func number(f float64) string { b, _ := json.Marshal(f); return string(b) }

// What the page says was sent is what the client got.
func TestExactFieldsSent(t *testing.T) {
	a := newAdmin(t)
	limiter := bucket(t, algo.PerMinute(1))
	h := httpmw.Limit(limiter, keyfunc.Header("X-User"), httpmw.WithName("users"), httpmw.WithObserver(a.Observe))(http.NotFoundHandler())
	for i, status := range []int{404, 429} {
		r := local("GET", "", "")
		r.Header.Set("X-User", "ada")
		w := serve(h, r)
		require.Equal(t, status, w.Code)
		var want []any
		for _, name := range []string{"RateLimit-Policy", "RateLimit", "Retry-After"} {
			if v := w.Header().Get(name); v != "" {
				want = append(want, name+": "+v)
			}
		}
		require.Len(t, want, 2+i)
		d := at(t, state(t, a), "decisions", 0)
		require.Equal(t, want, at(t, d, "sent"))
		require.Equal(t, "users", at(t, d, "policy"))
		require.Len(t, at(t, d, "hash"), 16)
	}
}

// What came from clients stays text: no byte of it can be markup.
func TestMarkupStaysText(t *testing.T) {
	const evil = `"><script>alert(1)</script>&'</title>` + "\u2028\xff\x00"
	name := `<img src=x onerror=alert(1)>`
	a := newAdmin(t, admin.WithPolicy(name, bucket(t, algo.PerHour(1))), admin.WithTitle(name), admin.WithAuthorize(anybody))
	e := event(telemetry.Denied, algo.Decision{})
	e.Policy, e.Method, e.Err = name, evil, errors.New(evil)
	e.Sent.Policy = evil
	a.Observe(e)
	long := event(telemetry.FailedClosed, algo.Decision{})
	long.Method, long.Err = strings.Repeat("<", 1<<16), errors.New(strings.Repeat("<", 1<<16))
	a.Observe(long)

	key, _ := json.Marshal(evil)
	bodies := serve(a, local("GET", "api/state", "")).Body.String() +
		serve(a, order("why", `{"policy":"<img src=x onerror=alert(1)>","key":`+string(key)+`}`)).Body.String() +
		serve(a, order("why", `{"policy":`+string(key)+`,"key":""}`)).Body.String() +
		serve(a, order(`peek"><script>`, `{}`)).Body.String()
	require.NotContains(t, bodies, "<")
	require.NotContains(t, bodies, ">")
	require.NotContains(t, bodies, "\u2028")
	require.NotContains(t, bodies, "\x00")

	s := state(t, a)
	require.Equal(t, name, s["title"])
	require.Equal(t, name, at(t, s, "policies", 0, "name"))
	for _, d := range s["decisions"].([]any) {
		require.Less(t, len(at(t, d, "method").(string)), 300)
		require.Less(t, len(at(t, d, "err").(string)), 300)
	}
}

// An adaptive limiter is shown with its history, which is recorded once a second
// by the first caller.
func TestAdaptivePanel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(adaptive.New(adaptive.Fixed(2)))
		a := newAdmin(t, admin.WithAdaptive("api", l), admin.WithPolicy("p", l))
		for range 3 {
			l.Acquire(context.Background(), "", 1)
		}
		a.Observe(event(telemetry.Allowed, algo.Decision{}))
		time.Sleep(2 * time.Second)
		s := state(t, a)
		panel := at(t, s, "adaptive", 0)
		require.Equal(t, "api", at(t, panel, "name"))
		require.Equal(t, 2.0, at(t, panel, "limit"))
		require.Equal(t, 2.0, at(t, panel, "in_flight"))
		require.Equal(t, "fixed", at(t, panel, "strategies", 0, "name"))
		require.Equal(t, map[string]any{"name": "limit", "n": 1.0}, at(t, panel, "denied", 0))
		require.Equal(t, []any{2.0, -1.0}, at(t, panel, "in_flights"))
		require.Equal(t, []any{2.0, -1.0}, at(t, panel, "limits"))
		require.Positive(t, at(t, s, "process", "goroutines"))
		require.Equal(t, map[string]any{"quota": 2.0, "window": 0.0, "unit": "concurrent-requests"}, at(t, s, "policies", 0, "limit"))
	})
}

// The tenants of an overload are shown: what they asked for and got; their names only if keys are.
func TestTenantsOfAnOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithLimits(1, 1), adaptive.WithFairShares(nil)))
		opts := []admin.Option{admin.WithAdaptive("api", l)}
		require.Equal(t, []any{}, at(t, state(t, newAdmin(t, opts...)), "adaptive", 0, "tenants"))
		time.Sleep(time.Second)
		held, err := l.Acquire(t.Context(), "calm", 1)
		require.NoError(t, err)
		for range 4 { // the first one begins the overload
			l.Acquire(t.Context(), "flood", 1)
		}
		held.Release(algo.Succeeded)
		l.Acquire(t.Context(), "calm", 1)
		tenants := at(t, state(t, newAdmin(t, opts...)), "adaptive", 0, "tenants").([]any)
		require.Len(t, tenants, 2)
		for i, want := range []struct {
			tenant        string
			asked, gotten float64
		}{{"flood", .75, 0}, {"calm", .25, 1}} {
			require.Equal(t, fmt.Sprintf("%016x", keyfunc.Hash(want.tenant)), at(t, tenants, i, "hash"))
			require.Equal(t, "", at(t, tenants, i, "key"))
			require.Equal(t, want.asked, at(t, tenants, i, "asked"))
			require.Equal(t, want.gotten, at(t, tenants, i, "admitted"))
			require.Equal(t, want.gotten, at(t, tenants, i, "served"))
		}
		clear := newAdmin(t, append(opts, admin.WithClearKeys())...)
		require.Equal(t, "flood", at(t, state(t, clear), "adaptive", 0, "tenants", 0, "key"))
	})
}

// Among many tenants the page names the flood alone.
func TestFloodAmongManyTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithLimits(1000, 1000), adaptive.WithFairShares(nil)))
		time.Sleep(time.Second)
		for range 1001 { // the last one begins the overload
			lease, err := l.Acquire(t.Context(), "before", 1)
			require.NoError(t, err)
			defer lease.Release(algo.Succeeded)
		}
		for i := range 900 {
			l.Acquire(t.Context(), fmt.Sprint("small ", i), 1)
			l.Acquire(t.Context(), "flood", 1)
		}
		tenants := at(t, state(t, newAdmin(t, admin.WithAdaptive("api", l))), "adaptive", 0, "tenants").([]any)
		require.Len(t, tenants, 1)
		require.Equal(t, fmt.Sprintf("%016x", keyfunc.Hash("flood")), at(t, tenants, 0, "hash"))
		require.InDelta(t, .5, at(t, tenants, 0, "asked"), 1./32)
	})
}

// Denials of an adaptive limiter are shown, for every reason.
func TestEveryCauseIsShown(t *testing.T) {
	a := newAdmin(t, admin.WithAdaptive("api", algo.Must(adaptive.New(adaptive.Default()))))
	denied := at(t, state(t, a), "adaptive", 0, "denied").([]any)
	require.Len(t, denied, reflect.TypeFor[adaptive.Denials]().NumField())
	var names []any
	for i := range denied {
		names = append(names, at(t, denied, i, "name"))
	}
	require.Contains(t, names, "processor")
}

// Where there is no limit, none is drawn, and there is no pace at it.
func TestAdaptivePanelWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(adaptive.New(strategy.BBR(strategy.WithSignal(idle{}))))
		a := newAdmin(t, admin.WithAdaptive("api", l))
		lease, err := l.Acquire(context.Background(), "", 1)
		require.NoError(t, err)
		a.Observe(event(telemetry.Allowed, algo.Decision{}))
		time.Sleep(time.Second)
		lease.Release(algo.Succeeded)
		panel := at(t, state(t, a), "adaptive", 0)
		require.Equal(t, float64(math.MaxInt32), at(t, panel, "limit"))
		require.Zero(t, at(t, panel, "pace"))
		require.Equal(t, []any{1.0}, at(t, panel, "in_flights"))
		require.Equal(t, []any{-1.0}, at(t, panel, "limits"))
	})
}

// idle is the signal of a machine that does nothing.
type idle struct{}

func (idle) Read() (float64, bool) { return 0, true }

// A request that meets three limits is three decisions and one request.
func TestRequestsAreCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmin(t)
		require.Nil(t, at(t, state(t, a), "requests"), "the service does not count them")
		policy := func(name string, burst int64) httpmw.Policy {
			return httpmw.Policy{Name: name, Limiter: algo.Must(algo.NewTokenBucket(algo.PerHour(1), algo.Burst(burst))), Key: keyfunc.Global()}
		}
		outer := httpmw.Limit(algo.Must(algo.NewTokenBucket(algo.PerHour(100))), keyfunc.Global(), httpmw.WithName("outer"), httpmw.WithObserver(a.Observe))
		inner := httpmw.Limits([]httpmw.Policy{policy("a", 5), policy("b", 2)}, httpmw.WithObserver(a.Observe))
		h := outer(inner(http.NotFoundHandler()))
		for range 3 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			a.CountRequest(w.Code != http.StatusTooManyRequests)
		}
		time.Sleep(time.Second)
		require.Equal(t, map[string]any{"admitted": []any{2.0}, "denied": []any{1.0}}, at(t, state(t, a), "requests"))
	})
}

// TestPageNamesTheMissingKey: requests without an identity are no caller among others, in the
// list of the heaviest and in the decisions.
func TestPageNamesTheMissingKey(t *testing.T) {
	for name, missing := range map[string][]httpmw.Option{"shared": nil, "denied": {httpmw.WithMissingKey(401)}} {
		a := newAdmin(t)
		handler := httpmw.Limit(algo.Must(algo.NewTokenBucket(algo.PerHour(1))), keyfunc.Header("X-User"),
			append(missing, httpmw.WithName("p"), httpmw.WithObserver(a.Observe))...)(http.NotFoundHandler())
		for range 2 {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}
		s := state(t, a)
		require.Equal(t, "~missing", at(t, s, "decisions", 0, "key"), name)
		require.Equal(t, "~missing", at(t, s, "top", 0, "key"), name)
	}
}
