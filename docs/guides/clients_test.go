package guides_test

import (
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
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
