package guides_test

import (
	"fmt"
	"log/slog"
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

// A new limit is tried on live traffic before it denies anything.
func Example_trial() {
	perClient := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	trial := algo.NewSwitch(algo.Shadow(perClient))
	limit := httpmw.Limit(trial, keyfunc.ClientIP(), httpmw.WithName("client"))

	for range 3 {
		fmt.Print(get(limit(ok), "/", "").Code, " ")
	}
	trial.Off()
	fmt.Println(trial.IsOn())
	// Output: 200 200 200 false
}
