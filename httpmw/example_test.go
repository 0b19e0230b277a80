package httpmw_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

func ExampleLimit() {
	perClient := algo.Must(algo.NewTokenBucket(algo.PerMinute(2)))
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	handler := httpmw.Limit(perClient, keyfunc.ClientIP())(hello)

	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"), w.Header().Get("RateLimit"))
	}
	// Output:
	// 200 "2-per-60s";q=2;w=60 "2-per-60s";r=1;t=30
	// 200 "2-per-60s";q=2;w=60 "2-per-60s";r=0;t=30
	// 429 "2-per-60s";q=2;w=60 "2-per-60s";r=0;t=30
}

func ExampleLimits() {
	burst := algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
	daily := algo.Must(algo.NewTokenBucket(algo.PerDay(2)))
	handler := httpmw.Limits([]httpmw.Policy{
		{Name: "burst", Limiter: burst, Key: keyfunc.ClientIP()},
		{Name: "daily", Limiter: daily, Key: keyfunc.ClientIP()},
	})(http.NotFoundHandler())

	var w *httptest.ResponseRecorder
	for range 3 {
		w = httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	}
	fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	fmt.Println(w.Body)
	// Output:
	// 429 "burst";q=10;w=1, "daily";q=2;w=86400
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"violated-policies":["daily"]}
}

func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer server.Close()
	tenPerSecond := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(1)))
	client := &http.Client{
		Transport: httpmw.Transport(server.Client().Transport, tenPerSecond, keyfunc.Global()),
		Timeout:   5 * time.Second, // a request that would have to wait longer fails at once
	}
	start := time.Now()
	for range 3 {
		resp, err := client.Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
	}
	fmt.Println("two waits of 100 ms:", time.Since(start) > 199*time.Millisecond)
	// Output: two waits of 100 ms: true
}

// A search costs as many units as it finds rows, which is known afterwards.
func ExampleLeaseFrom() {
	rows := algo.Must(algo.NewTokenBucket(algo.PerHour(1000)))
	search := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		found := int64(250)
		httpmw.LeaseFrom(r.Context()).Settle(found)
	})
	handler := httpmw.Limit(rows, keyfunc.Global(), httpmw.WithLeaseInContext())(search)
	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Header().Get("RateLimit"))
	}
	// Output:
	// "1000-per-3600s";r=999;t=4
	// "1000-per-3600s";r=749;t=4
}

// Only failed attempts to log in are counted, and nobody is told how many are
// left.
func ExampleWithRefundIf() {
	failures := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	login := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	handler := httpmw.Limit(failures, keyfunc.BasicUser(),
		httpmw.WithRefundIf(func(status int) bool { return status != http.StatusUnauthorized }),
		httpmw.WithHeaders(httpmw.None))(login)
	for _, password := range []string{"secret", "secret", "secret", "a", "b", "c"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.SetBasicAuth("alice", password)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Print(w.Code, " ")
	}
	// Output: 200 200 200 401 401 429
}

func ExampleDenialFrom() {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, _ := httpmw.DenialFrom(r.Context())
		w.WriteHeader(d.Status)
		fmt.Fprintf(w, "You have used %s up, all %d of it.", d.Policy, d.Decision.Limit)
	})
	limiter := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	handler := httpmw.Limit(limiter, keyfunc.ClientIP(), httpmw.WithName("trial"), httpmw.WithDenied(page))(http.NotFoundHandler())
	var w *httptest.ResponseRecorder
	for range 2 {
		w = httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	}
	fmt.Println(w.Code, w.Body)
	// Output: 429 You have used trial up, all 1 of it.
}

func ExampleFallbackTo() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	user := keyfunc.Header("X-User") // set by the gateway for those who are logged in
	handler := httpmw.Limit(limiter, user, httpmw.WithMissingKey(httpmw.FallbackTo(keyfunc.ClientIP())))(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for _, name := range []string{"alice", "bob", "", ""} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-User", name)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Print(w.Code, " ")
	}
	// Output: 200 200 200 429
}
