package httpmw_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
)

// TestPatience: a request whose client gives up before the handler could end is
// denied, and observers see why.
func TestPatience(t *testing.T) {
	for name, row := range map[string]struct {
		header []string
		ctx    time.Duration // deadline of the context; 0: none
		status int
	}{
		"none":                  {nil, 0, 200},
		"enough":                {[]string{"Connect-Timeout-Ms", "200"}, 0, 200},
		"zero":                  {[]string{"Connect-Timeout-Ms", "0"}, 0, 503},
		"no number":             {[]string{"Connect-Timeout-Ms", "-1"}, 0, 200},
		"huge":                  {[]string{"Connect-Timeout-Ms", "99999999999999999999"}, 0, 200},
		"gRPC":                  {[]string{"Grpc-Timeout", "50m"}, 0, 503},
		"Connect":               {[]string{"Connect-Timeout-Ms", "50"}, 0, 503},
		"the context's":         {nil, 50 * time.Millisecond, 503},
		"the shorter of two":    {[]string{"Connect-Timeout-Ms", "1000"}, 50 * time.Millisecond, 503},
		"the field, if shorter": {[]string{"Connect-Timeout-Ms", "50"}, time.Second, 503},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var events []telemetry.Event
				h := httpmw.Limit(algo.Must(adaptive.New(adaptive.Default())), key(""),
					httpmw.WithObserver(func(e telemetry.Event) { events = append(events, e) }),
				)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(100 * time.Millisecond) }))
				require.Equal(t, 200, serve(h, get()).Code)
				r := get(row.header...)
				if row.ctx > 0 {
					ctx, cancel := context.WithTimeout(t.Context(), row.ctx)
					defer cancel()
					r = r.WithContext(ctx)
				}
				w := serve(h, r)
				require.Equal(t, row.status, w.Code)
				last := events[len(events)-1]
				if row.status == 200 {
					require.Equal(t, telemetry.Allowed, last.Result)
					return
				}
				require.Equal(t, telemetry.Denied, last.Result)
				require.ErrorIs(t, last.Err, context.DeadlineExceeded)
				require.Equal(t, algo.Overload, last.Decision.Reason)
				require.Empty(t, w.Header().Get("Retry-After"))
			})
		})
	}
}

// lateTimer is a context whose timer has not been served yet, as under load.
type lateTimer struct {
	context.Context
	deadline time.Time
}

func (c lateTimer) Deadline() (time.Time, bool) { return c.deadline, true }

// FailOpen is not for requests either whose time runs out in a queue, before their timer fires.
func TestFailOpenIsNotForTheLateTimer(t *testing.T) {
	roomy := httpmw.Policy{Name: "a", Limiter: bucket(t, algo.PerSecond(1000)), Key: key("k")}
	for _, field := range []bool{false, true} {
		for _, several := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				l := algo.Must(adaptive.New(adaptive.Fixed(1), adaptive.WithQueue(adaptive.FIFO(10, time.Second))))
				hold, err := l.Acquire(t.Context(), "", 1)
				require.NoError(t, err)
				var last telemetry.Event
				opts := []httpmw.Option{httpmw.WithFailOpen(),
					httpmw.WithObserver(func(e telemetry.Event) { last = e })}
				limit := httpmw.Limit(l, key("k"), opts...)
				if several {
					limit = httpmw.Limits([]httpmw.Policy{roomy, {Name: "b", Limiter: l, Key: key("k")}}, opts...)
				}
				r := get()
				r = r.WithContext(lateTimer{r.Context(), time.Now().Add(100 * time.Millisecond)})
				if field {
					r = get("Connect-Timeout-Ms", "100")
				}
				require.Equal(t, 503, serve(limit(unreachable(t)), r).Code)
				require.Equal(t, telemetry.Canceled, last.Result)
				require.Equal(t, context.DeadlineExceeded, last.Err)
				hold.Release(algo.Failed | algo.Untimed)
			})
		}
	}
}
