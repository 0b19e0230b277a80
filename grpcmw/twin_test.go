package grpcmw_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// One limiter behind both transports: the same names, keys, results and hashes,
// so that an operator sees one limit and not two.
func TestTwins(t *testing.T) {
	noHTTP := func(*http.Request) (string, error) { return "", keyfunc.ErrNoKey }
	noRPC := func(context.Context, string) (string, error) { return "", keyfunc.ErrNoKey }
	anybody := func(*http.Request) (string, error) { return "alice", nil }
	anyRPC := func(context.Context, string) (string, error) { return "alice", nil }
	for name, row := range map[string]struct {
		l    algo.Limiter
		http keyfunc.HTTP
		rpc  keyfunc.RPC
	}{
		"a key":          {algo.Must(algo.NewTokenBucket(algo.PerHour(3))), anybody, anyRPC},
		"no key":         {algo.Must(algo.NewTokenBucket(algo.PerSecond(7))), noHTTP, noRPC},
		"one for all":    {algo.Must(algo.NewPacer(algo.PerHour(1), algo.MaxWait(0))), keyfunc.Global(), rpckey.Global()},
		"in flight":      {&slots{limit: 64}, anybody, anyRPC},
		"no description": {&script{}, anybody, anyRPC},
		"denied":         {always(never), anybody, anyRPC},
		"out of order":   {failing(context.DeadlineExceeded), anybody, anyRPC},
	} {
		t.Run(name, func(t *testing.T) {
			var over telemetry.Event
			h := httpmw.Limit(row.l, row.http, httpmw.WithObserver(func(e telemetry.Event) { over = e }))(http.NotFoundHandler())
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			var rpc telemetry.Event
			intercept(t.Context(), grpcmw.UnaryServerInterceptor(row.l, row.rpc, grpcmw.WithObserver(func(e telemetry.Event) { rpc = e })))
			require.Equal(t, over.Policy, rpc.Policy)
			require.Equal(t, over.KeyHash, rpc.KeyHash)
			require.Equal(t, name == "one for all", rpc.KeyHash == 0)
			require.Equal(t, over.Cost, rpc.Cost)
			if name != "one for all" { // which has room for one only
				require.Equal(t, over.Result.String(), rpc.Result.String())
			}
		})
	}
}

// A caller that is denied for lack of a key is reported alike, and not as if a
// limiter had admitted it.
func TestTwinsWithoutAKey(t *testing.T) {
	var over telemetry.Event
	var rpc telemetry.Event
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(3)))
	deny := httpmw.WithMissingKey(http.StatusUnauthorized)
	h := httpmw.Limit(l, keyfunc.Header("X-User"), deny, httpmw.WithObserver(func(e telemetry.Event) { over = e }))(http.NotFoundHandler())
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	err := intercept(t.Context(), grpcmw.UnaryServerInterceptor(l, rpckey.Metadata("x-user"),
		grpcmw.WithMissingKey(codes.Unauthenticated), grpcmw.WithObserver(func(e telemetry.Event) { rpc = e })))
	require.Error(t, err)
	want := algo.Decision{Reason: algo.Never, RetryAfter: algo.Forever}
	require.Equal(t, want, over.Decision)
	require.Equal(t, want, rpc.Decision)
	require.Equal(t, "denied denied", over.Result.String()+" "+rpc.Result.String())
}
