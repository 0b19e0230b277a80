package httpmw_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

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
