package httpmw_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/rpc"
	"github.com/sluice-go/sluice/keyfunc"
)

// The answer for a limit that a handler asks equals the middleware's: status, fields and body.
func TestAnswerIsThatOfTheMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a limit must not refill meanwhile
		inFlight := func(reason algo.Reason) *scripted {
			s := denying(reason, time.Second)
			s.description = algo.Description{Quota: 10, Unit: algo.ConcurrentRequests}
			return s
		}
		banned := denying(algo.Quota, time.Second)
		banned.decision.Reason = algo.Banned
		failing := &scripted{err: errors.New("away")}
		limits := map[string]algo.Limiter{
			"quota": denying(algo.Quota, time.Second), "overload": denying(algo.Overload, time.Second), "never": denying(algo.Never, algo.Forever),
			"in flight": inFlight(algo.Overload), "banned": banned, "failing": failing, "real": bucket(t, algo.PerSecond(1), algo.Burst(1)), "admitted": admitting(),
		}
		requests := map[string][]string{
			"plain": nil, "browser": {"Accept", "text/html"}, "grpc": {"Content-Type", "application/grpc"},
			"connect": {"Content-Type", "application/proto", "Connect-Protocol-Version", "1"},
		}
		options := map[string][]httpmw.Option{
			"": nil, "legacy": {httpmw.WithHeaders(httpmw.Legacy)}, "none": {httpmw.WithHeaders(httpmw.None)},
			"rpc": {httpmw.WithDenied(rpc.Denied(nil))}, "named": {httpmw.WithName("upload")},
		}
		global, _ := keyfunc.Global()(nil)
		statuses := map[int]bool{}
		for what, l := range limits {
			for protocol, headers := range requests {
				for set, opts := range options {
					for _, k := range []string{"k", global} {
						name := strings.Join([]string{what, protocol, set, k}, "/")
						want := serve(httpmw.Limit(l, key(k), opts...)(ok), get(headers...))
						if what == "real" { // the first request was admitted
							want = serve(httpmw.Limit(l, key(k), opts...)(ok), get(headers...))
						}
						got := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							lease, err := l.Acquire(r.Context(), k, 1)
							require.Equal(t, what == "failing", err != nil)
							admitted := httpmw.Answer(w, r, l, k, lease.Decision, opts...)
							require.Equal(t, lease.Allowed, admitted, name)
							if admitted {
								ok.ServeHTTP(w, r)
							}
						}), get(headers...))
						require.Equal(t, want.Code, got.Code, name)
						for _, spread := range []string{"Retry-After-Ms", "Grpc-Retry-Pushback-Ms"} {
							require.Equal(t, want.Header().Get(spread) == "", got.Header().Get(spread) == "", name)
							want.Header().Del(spread)
							got.Header().Del(spread)
						}
						require.Equal(t, want.Header(), got.Header(), name)
						require.Equal(t, want.Body.String(), got.Body.String(), name)
						statuses[got.Code] = true
					}
				}
			}
		}
		require.Equal(t, map[int]bool{200: true, 429: true, 503: true}, statuses) // 200 is gRPC's
	})
}

// A mistake of wiring panics.
func TestAnswerOfNoLimiter(t *testing.T) {
	require.Panics(t, func() {
		serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			httpmw.Answer(w, r, nil, "k", algo.Decision{})
		}), get())
	})
}
