package guides_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/algo/telemetry/eventlog"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// withoutTime drops the attributes that differ from run to run.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == "time" || a.Key == "key" || a.Key == "retry_after" {
		return slog.Attr{}
	}
	return a
}

// A log of denials, and a counter of one's own.
func Example_observability() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	perClient := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))

	denials, err := eventlog.New(logger)
	if err != nil {
		panic(err)
	}
	var denied atomic.Int64
	count := func(e telemetry.Event) {
		if e.Result == telemetry.Denied {
			denied.Add(1)
		}
	}
	limit := httpmw.Limit(perClient, keyfunc.ClientIP(), httpmw.WithName("client"),
		httpmw.WithObserver(telemetry.Tee(denials.Observe, count)))

	handler := limit(ok)
	for range 3 {
		get(handler, "/", "")
	}
	fmt.Println(denied.Load())
	// Output:
	// level=INFO msg="requests denied" code=telemetry.denied policy=client transport=http client=false reason=quota count=1 status=429
	// 2
}

// A client is marked before its first denial, for the operator and for itself.
func Example_beforeTheLimit() {
	perClient := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
	var marked []string

	near := func(e telemetry.Event) {
		if d := e.Decision; d.Allowed && d.InForce() && d.Remaining <= d.Limit/5 {
			marked = append(marked, fmt.Sprintf("%s %d %% used", e.Policy, 100-100*d.Remaining/d.Limit))
		}
	}
	limit := httpmw.Limit(perClient, keyfunc.ClientIP(), httpmw.WithName("client"),
		httpmw.WithObserver(near), httpmw.WithLeaseInContext())
	handler := limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lease := algo.LeaseFrom(r.Context(), "client"); lease.Allowed && lease.InForce() && lease.Remaining <= lease.Limit/5 {
			w.Header().Set("X-Quota-Warning", "80 % used")
		}
	}))

	for range 6 {
		w := get(handler, "/", "")
		fmt.Printf("%d %q\n", w.Code, w.Header().Get("X-Quota-Warning"))
	}
	fmt.Println(marked)
	// Output:
	// 200 ""
	// 200 ""
	// 200 ""
	// 200 "80 % used"
	// 200 "80 % used"
	// 429 ""
	// [client 80 % used client 100 % used]
}

// A new limit is tried on live traffic before it denies anything.
func Example_trial() {
	perClient := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	denials := algo.Must(eventlog.New(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))))

	trial := algo.NewSwitch(algo.Shadow(perClient))
	limit := httpmw.Limit(trial, keyfunc.ClientIP(), httpmw.WithName("client"), httpmw.WithObserver(denials.Observe))

	for range 3 {
		fmt.Println(get(limit(ok), "/", "").Code)
	}
	trial.Off()
	fmt.Println(trial.IsOn())
	// Output:
	// 200
	// level=INFO msg="requests that a shadow limit would have denied" code=telemetry.shadowed policy=client transport=http client=false reason=quota count=1
	// 200
	// 200
	// false
}
