package guides_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/keyfunc"
)

// The answer of the service in its own words.
func Example_denied() {
	perClient := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))

	limit := httpmw.Limit(perClient, keyfunc.ClientIP(), httpmw.WithName("trial"),
		httpmw.WithDenied(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d, _ := httpmw.DenialFrom(r.Context())
			w.WriteHeader(d.Status)
			fmt.Fprintf(w, "limit %s: %v\n", d.Policy, d.Decision.Reason)
		})))

	get(limit(ok), "/", "")
	w := get(limit(ok), "/", "")
	fmt.Println(w.Code, w.Body, w.Header().Get("Retry-After") >= "3599")
	// Output:
	// 429 limit trial: quota
	//  true
}

// A limit that the handler asks itself.
func Example_answer() {
	rows := algo.Must(algo.NewTokenBucket(algo.PerHour(1000)))
	export := func(w http.ResponseWriter, r *http.Request) {
		user, n := "alice", int64(800)

		lease, _ := rows.Acquire(r.Context(), user, n) // an error is answered with 503
		if !httpmw.Answer(w, r, rows, user, lease.Decision, httpmw.WithName("rows")) {
			return
		}
		defer lease.Release(algo.Succeeded)

		fmt.Fprint(w, "rows")
	}
	fmt.Println(get(http.HandlerFunc(export), "/", "").Code, get(http.HandlerFunc(export), "/", "").Code)
	// Output: 200 429
}

// A client that reads the fields of a service.
func Example_quotaWait() {
	perModel := algo.Must(algo.NewTokenBucket(algo.PerMinute(60)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Ratelimit-Remaining-Tokens", "0")
		w.Header().Set("X-Ratelimit-Reset-Tokens", "6m0s")
	}))
	defer server.Close()

	c := &http.Client{
		Timeout:   time.Minute,
		Transport: client.Transport(nil, perModel, keyfunc.Global(), client.WithServerWait(client.QuotaWait)),
	}

	for range 2 {
		res, err := c.Get(server.URL)
		fmt.Println(errors.Is(err, algo.ErrWait))
		if err == nil {
			res.Body.Close()
		}
	}
	// Output:
	// false
	// true
}
