package httpmw_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
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
	// 200 "2-per-minute";q=2;w=60 "2-per-minute";r=1;t=30
	// 200 "2-per-minute";q=2;w=60 "2-per-minute";r=0;t=30
	// 429 "2-per-minute";q=2;w=60 "2-per-minute";r=0;t=30
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

// Behind proxies the address of the client is in a header, which is trusted of
// the proxies only.
func ExampleLimit_behindProxies() {
	perClient := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	proxies := netip.MustParsePrefix("10.0.0.0/8")
	handler := httpmw.Limit(perClient, keyfunc.ClientIP(proxies))(http.NotFoundHandler())

	for _, from := range []struct{ peer, header string }{
		{"10.0.0.1:4711", "203.0.113.7"},
		{"10.0.0.2:4711", "203.0.113.7"}, // the same client through another proxy
		{"10.0.0.1:4711", "203.0.113.8"},
		{"198.51.100.1:4711", "203.0.113.9"}, // not a proxy
		{"198.51.100.1:4711", "203.0.113.10"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = from.peer
		r.Header.Set("X-Forwarded-For", from.header)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Print(w.Code, " ")
	}
	// Output: 404 429 404 404 429
}

// A quota for each API key, before the key is checked: neither the limiter nor a
// log sees the key itself. Requests without one are turned away.
func ExampleWithMissingKey() {
	perKey := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	pepper := []byte("the same secret on every instance")
	handler := httpmw.Limit(perKey, keyfunc.Secret("X-API-Key", pepper),
		httpmw.WithMissingKey(http.StatusUnauthorized))(http.NotFoundHandler())

	for _, apiKey := range []string{"k-1", "k-1", "k-2", ""} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-API-Key", apiKey)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header()["Retry-After"] != nil)
	}
	// Output:
	// 404 false
	// 429 true
	// 404 false
	// 401 false
}

// An upload costs a unit for each MiB that it says it has.
func ExampleWithCost() {
	mebibytes := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
	handler := httpmw.Limit(mebibytes, keyfunc.ClientIP(), httpmw.WithCost(func(r *http.Request) int64 {
		if r.ContentLength < 0 {
			return 100 // of unknown length
		}
		return 1 + r.ContentLength>>20
	}))(http.NotFoundHandler())

	for _, size := range []int64{10 << 20, -1} {
		r := httptest.NewRequest("PUT", "/", nil)
		r.ContentLength = size
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 404 "100-per-hour";r=89;t=36
	// 429 "100-per-hour";r=89;t=36
}

// A new limit is tried on live traffic: it denies no request, and the observer
// counts the requests that it would have denied.
func ExampleLimit_shadow() {
	trial := algo.Shadow(algo.Must(algo.NewTokenBucket(algo.PerMinute(2))))
	handler := httpmw.Limit(trial, keyfunc.ClientIP(),
		httpmw.WithObserver(func(e telemetry.Event) {
			if e.Decision.Trial != algo.Admitted {
				fmt.Println("would have been denied:", e.Decision.Trial)
			}
		}))(http.NotFoundHandler())

	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 404
	// 404
	// would have been denied: quota
	// 404
}

// Two limits under one key and one name. Limits advertises each.
func ExampleLimit_all() {
	perClient := algo.All(
		algo.Must(algo.NewTokenBucket(algo.PerSecond(1))),
		algo.Must(algo.NewTokenBucket(algo.PerHour(1000))))
	handler := httpmw.Limit(perClient, keyfunc.ClientIP(), httpmw.WithName("all"))(http.NotFoundHandler())

	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 404 "all";r=0;t=1
	// 429 "all";r=0;t=1
}

// A search costs as many units as it finds rows, which is known afterwards.
func ExampleWithLeaseInContext() {
	rows := algo.Must(algo.NewTokenBucket(algo.PerHour(1000)))
	search := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		found := int64(250)
		algo.LeaseFrom(r.Context()).Settle(found)
	})
	handler := httpmw.Limit(rows, keyfunc.Global(), httpmw.WithLeaseInContext())(search)
	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Header().Get("RateLimit"))
	}
	// Output:
	// "1000-per-hour";r=999;t=4
	// "1000-per-hour";r=749;t=4
}

// Only failed attempts to log in are counted, and no response shows the
// remaining number.
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
