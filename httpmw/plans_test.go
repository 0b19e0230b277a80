package httpmw_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// user is the authenticated user of a request.
type user struct{ name, plan string }

type userKey struct{}

func userOf(ctx context.Context) (string, bool) {
	u, ok := ctx.Value(userKey{}).(user)
	return u.name, ok
}

func planOf(ctx context.Context) (string, bool) {
	u, ok := ctx.Value(userKey{}).(user)
	return u.plan, ok
}

// from is a request of a user; "" is an anonymous one.
func from(name, plan, address string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = address + ":4711"
	if name == "" {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), userKey{}, user{name, plan}))
}

func TestPlans(t *testing.T) {
	free, pro, anonymous := bucket(t, algo.PerHour(2)), bucket(t, algo.PerHour(4)), bucket(t, algo.PerHour(1))
	plans := httpmw.NewPlans(keyfunc.Context(planOf), map[string][]httpmw.Policy{
		"free": {{Limiter: free, Key: keyfunc.Context(userOf)}},
		"pro":  {{Limiter: pro, Key: keyfunc.Context(userOf)}},
		"":     {{Name: "anonymous", Limiter: anonymous, Key: keyfunc.ClientIP()}},
	})
	h := plans.Limit(ok)
	served := func(name, plan, address string) (n int) {
		for serve(h, from(name, plan, address)).Code == 200 {
			n++
		}
		return n
	}
	require.Equal(t, `"free";q=2;w=3600`, serve(h, from("eve", "free", "192.0.2.1")).Result().Header.Get(policyField))
	require.Equal(t, `"anonymous";q=1;w=3600`, serve(h, from("", "", "192.0.2.9")).Result().Header.Get(policyField))
	require.Equal(t, []string{"anonymous"}, problemOf(t, serve(h, from("", "", "192.0.2.9"))).Violated)
	require.Equal(t, 2, served("bob", "free", "192.0.2.1"))
	require.Equal(t, 4, served("alice", "pro", "192.0.2.1"), "one address, another user")
	require.Equal(t, 1, served("", "", "192.0.2.1"))
	require.Equal(t, 1, served("", "", "192.0.2.2"))
	require.Equal(t, 0, served("zed", "unlisted", "192.0.2.2"), "limited by address")

	// At run time: a limit, the plan of a user, and the table.
	require.NoError(t, algo.Spec{Rate: algo.PerHour(6)}.Apply(pro))
	require.Equal(t, 6, served("carol", "pro", "192.0.2.1"))
	require.Equal(t, 6, served("bob", "pro", "192.0.2.1"), "bob has upgraded")
	require.NoError(t, plans.Set(map[string][]httpmw.Policy{
		"free": {{Limiter: free, Key: keyfunc.Context(userOf)}},
		"team": {{Name: "burst", Limiter: bucket(t, algo.PerSecond(50)), Key: keyfunc.Context(userOf)},
			{Name: "daily", Limiter: bucket(t, algo.PerDay(3)), Key: keyfunc.Context(userOf)}},
	}))
	require.Equal(t, 0, served("bob", "free", "192.0.2.1"), "the limiter keeps the spent units")
	require.Equal(t, 3, served("dan", "team", "192.0.2.1"))
	require.Equal(t, []string{"daily"}, problemOf(t, serve(h, from("dan", "team", "192.0.2.1"))).Violated)
	require.Equal(t, 503, serve(h, from("", "", "192.0.2.77")).Code, `no plan "" any more`)
	require.EqualError(t, plans.Set(nil), "httpmw: Plans: there are no plans")
	require.EqualError(t, plans.Set(map[string][]httpmw.Policy{"x": {{Limiter: free}}}),
		`httpmw: Plans: plan "x": the key function is nil`)
	require.Equal(t, 503, serve(h, from("", "", "192.0.2.77")).Code, "unchanged")
}

// A header that is sent twice, or that names a plan, changes nothing: the
// authenticated user has the plan.
func TestPlansAreNotChosenByTheClient(t *testing.T) {
	h := httpmw.NewPlans(keyfunc.Context(planOf), map[string][]httpmw.Policy{
		"pro": {{Limiter: bucket(t, algo.PerHour(100)), Key: keyfunc.Context(userOf)}},
		"":    {{Name: "anonymous", Limiter: bucket(t, algo.PerHour(1)), Key: keyfunc.ClientIP()}},
	}).Limit(ok)
	for i, want := range []int{200, 429, 429} {
		r := from("", "", "192.0.2.1")
		for range i {
			r.Header.Add("X-User", "alice")
			r.Header.Add("X-Plan", "pro")
		}
		require.Equal(t, want, serve(h, r).Code)
	}
}

func TestPlansByRoute(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /search", ok)
	mux.Handle("POST /upload", ok)
	h := httpmw.NewPlans(keyfunc.Pattern(mux), map[string][]httpmw.Policy{
		"GET /search":  {{Name: "search", Limiter: bucket(t, algo.PerHour(2)), Key: keyfunc.ClientIP()}},
		"POST /upload": {{Name: "upload", Limiter: bucket(t, algo.PerHour(1)), Key: keyfunc.ClientIP()}},
		"":             {{Name: "rest", Limiter: bucket(t, algo.PerHour(1)), Key: keyfunc.ClientIP()}},
	}).Limit(mux)
	for _, row := range []struct {
		method, path string
		want         int
	}{{"GET", "/search", 200}, {"GET", "/search", 200}, {"GET", "/search", 429}, {"POST", "/upload", 200}, {"POST", "/upload", 429}, {"GET", "/", 404}, {"GET", "/x", 429}} {
		require.Equal(t, row.want, serve(h, httptest.NewRequest(row.method, row.path, nil)).Code, "%s %s", row.method, row.path)
	}
}

// A request without a key and one over its quota have different answers.
func TestMissingKeyStatus(t *testing.T) {
	for _, want := range []int{401, 400, 403} {
		var seen telemetry.Event
		h := httpmw.Limit(admitting(), failingKey(keyfunc.ErrNoKey), httpmw.WithMissingKey(want),
			httpmw.WithObserver(func(e telemetry.Event) { seen = e }))(ok)
		w := serve(h, get())
		require.Equal(t, want, w.Code)
		require.Empty(t, w.Header().Get("Retry-After"))
		require.Empty(t, w.Header().Get(limitField))
		require.Equal(t, "about:blank", problemOf(t, w).Type)
		require.ErrorIs(t, seen.Err, keyfunc.ErrNoKey)
		require.Equal(t, want, seen.Status)
	}
	require.PanicsWithValue(t, "httpmw: Limit: WithMissingKey: is 200, want Shared, Skip, or a status from 400 to 499", func() {
		httpmw.Limit(admitting(), key("k"), httpmw.WithMissingKey(200))
	})
}

// A plan that cannot be found is treated as every other failure.
func TestPlansFailures(t *testing.T) {
	down := func(*http.Request) (string, error) { return "", errors.New("down") }
	limits := map[string][]httpmw.Policy{"": {{Limiter: bucket(t, algo.PerHour(1)), Key: key("k")}}}
	for name, row := range map[string]struct {
		opts   []httpmw.Option
		want   int
		result telemetry.Result
		events int
	}{
		"closed":  {nil, 503, telemetry.FailedClosed, 1},
		"open":    {[]httpmw.Option{httpmw.WithFailOpen()}, 200, telemetry.FailedOpen, 1},
		"skipped": {[]httpmw.Option{httpmw.WithSkip(func(*http.Request) bool { return true })}, 200, 0, 0},
	} {
		var events []telemetry.Event
		opts := append(slices.Clone(row.opts), httpmw.WithObserver(func(e telemetry.Event) { events = append(events, e) }))
		require.Equal(t, row.want, serve(httpmw.NewPlans(down, limits, opts...).Limit(ok), get()).Code, name)
		require.Len(t, events, row.events, name)
		if row.events > 0 {
			require.Equal(t, row.result, events[0].Result)
			require.Equal(t, "plans", events[0].Policy)
		}
	}
	require.PanicsWithValue(t, "httpmw: NewPlans: the function of the plan is nil", func() { httpmw.NewPlans(nil, limits) })
	require.PanicsWithValue(t, `httpmw: NewPlans: plan "a": there are no policies`, func() {
		httpmw.NewPlans(key("k"), map[string][]httpmw.Policy{"a": nil})
	})
	require.PanicsWithValue(t, "httpmw: NewPlans: duplicate option WithSkip", func() {
		skip := httpmw.WithSkip(func(*http.Request) bool { return true })
		httpmw.NewPlans(key("k"), limits, skip, skip)
	})
}

// A handler settles one of several limits by its name, also where one is left
// out, and where another middleware has it.
func TestLeaseOfAPolicy(t *testing.T) {
	requests, tokens, outer := bucket(t, algo.PerHour(10)), bucket(t, algo.PerHour(3000)), bucket(t, algo.PerHour(100))
	limit := httpmw.Limits([]httpmw.Policy{
		{Name: "user", Limiter: bucket(t, algo.PerHour(9)), Key: keyfunc.Header("X-User")},
		{Name: "requests", Limiter: requests, Key: key("k")},
		{Name: "tokens", Limiter: tokens, Key: key("k"), Cost: func(*http.Request) int64 { return 500 }},
	}, httpmw.WithLeaseInContext(), httpmw.WithMissingKey(httpmw.Skip))
	around := httpmw.Limit(algo.All(outer, bucket(t, algo.PerDay(100))), key("k"), httpmw.WithName("outer"), httpmw.WithLeaseInContext())
	h := around(limit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		algo.LeaseFrom(r.Context(), "tokens").Settle(1500)
		algo.LeaseFrom(r.Context(), "outer").Settle(3)
		algo.LeaseFrom(r.Context(), "unknown").Settle(1)
	})))
	require.Equal(t, 200, serve(h, get()).Code)
	left := func(l algo.Limiter) int64 {
		lease, err := l.Acquire(t.Context(), "k", 0)
		require.NoError(t, err)
		return lease.Remaining
	}
	require.EqualValues(t, 9, left(requests))
	require.EqualValues(t, 1500, left(tokens))
	require.EqualValues(t, 97, left(outer))
}

// Limits by plan, and for anonymous callers by address.
func ExampleNewPlans() {
	free := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	pro := algo.Must(algo.NewTokenBucket(algo.PerMinute(2)))
	anonymous := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	plans := httpmw.NewPlans(keyfunc.Context(planOf), map[string][]httpmw.Policy{
		"free": {{Limiter: free, Key: keyfunc.Context(userOf)}},
		"pro":  {{Limiter: pro, Key: keyfunc.Context(userOf)}},
		"":     {{Name: "anonymous", Limiter: anonymous, Key: keyfunc.ClientIP()}},
	})
	handler := plans.Limit(http.NotFoundHandler())

	for _, u := range []user{{"alice", "pro"}, {"bob", "free"}, {"", ""}} {
		for range 3 {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, from(u.name, u.plan, "192.0.2.7"))
			fmt.Print(w.Code, " ")
		}
	}
	// Output: 404 404 429 404 429 429 404 429 429
}

// The limits of a plan are replaced while requests are served.
func ExamplePlans_Set() {
	perHour := func(n int64) []httpmw.Policy {
		return []httpmw.Policy{{Name: "all", Limiter: algo.Must(algo.NewTokenBucket(algo.PerHour(n))), Key: keyfunc.Global()}}
	}
	plans := httpmw.NewPlans(keyfunc.Context(planOf), map[string][]httpmw.Policy{"": perHour(1)})
	handler := plans.Limit(http.NotFoundHandler())
	serveOne := func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, from("", "", "192.0.2.7"))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	serveOne()
	if err := plans.Set(map[string][]httpmw.Policy{"": perHour(10)}); err != nil {
		fmt.Println(err)
	}
	serveOne()
	// Output:
	// 404 "all";q=1;w=3600
	// 404 "all";q=10;w=3600
}

// Limits by route.
func ExamplePlans_Limit() {
	search := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	rest := algo.Must(algo.NewTokenBucket(algo.PerMinute(3)))
	mux := http.NewServeMux()
	mux.Handle("GET /search", http.NotFoundHandler())
	handler := httpmw.NewPlans(keyfunc.Pattern(mux), map[string][]httpmw.Policy{
		"GET /search": {{Name: "search", Limiter: search, Key: keyfunc.ClientIP()}},
		"":            {{Name: "rest", Limiter: rest, Key: keyfunc.ClientIP()}},
	}).Limit(mux)

	for _, path := range []string{"/search", "/search", "/", "/"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Print(w.Code, " ")
	}
	// Output: 404 429 404 404
}
