package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// The protocols that a client may speak.
var protocols = map[string][]connect.ClientOption{
	"connect": nil, "grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()},
}

type (
	ask    = grpc_health_v1.HealthCheckRequest
	answer = grpc_health_v1.HealthCheckResponse
)

// serveConnect serves connectAPI over HTTP/2, with a quota of one call.
func serveConnect(t *testing.T) (*httptest.Server, *gate) {
	users, err := algo.NewTokenBucket(algo.Per(1, time.Hour), algo.Burst(1))
	require.NoError(t, err)
	slots := newGate()
	mux := connectAPI(users, slots)
	mux.Handle("/test.Test/Panic", httpmw.Limit(slots, keyfunc.Global())(connect.NewUnaryHandler("/test.Test/Panic",
		func(context.Context, *connect.Request[ask]) (*connect.Response[answer], error) {
			panic(http.ErrAbortHandler)
		})))
	s := httptest.NewUnstartedServer(mux)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, slots
}

func request(user string) *connect.Request[ask] {
	r := connect.NewRequest(&ask{})
	r.Header().Set("X-User", user)
	return r
}

func TestConnect(t *testing.T) {
	for name, options := range protocols {
		t.Run(name, func(t *testing.T) {
			s, slots := serveConnect(t)
			check := connect.NewClient[ask, answer](s.Client(), s.URL+grpc_health_v1.Health_Check_FullMethodName, options...)
			watch := connect.NewClient[ask, answer](s.Client(), s.URL+grpc_health_v1.Health_Watch_FullMethodName, options...)
			ctx := context.Background()

			response, err := check.CallUnary(ctx, request("dave"))
			require.NoError(t, err)
			require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, response.Msg.GetStatus())
			require.Contains(t, response.Header()["Ratelimit"], `"1-per-hour";r=0;t=3600`)

			_, err = check.CallUnary(ctx, request("dave"))
			require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), "%v", err)
			var denial *connect.Error
			require.ErrorAs(t, err, &denial)
			require.NotEmpty(t, denial.Meta().Get("Retry-After"))

			// Another procedure is another key.
			stream, err := watch.CallServerStream(ctx, request("dave"))
			require.NoError(t, err)
			require.True(t, stream.Receive(), "%v", stream.Err())
			require.False(t, stream.Receive())
			require.NoError(t, stream.Err())
			require.NoError(t, stream.Close())

			stream, err = watch.CallServerStream(ctx, request("dave"))
			require.NoError(t, err)
			require.False(t, stream.Receive())
			require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(stream.Err()), "%v", stream.Err())
			stream.Close() // reports the same denial

			for range 4 {
				<-slots.outcomes
			}
			require.Zero(t, slots.inFlight.Load())
		})
	}
}

func TestConnectPanicFreesTheSlot(t *testing.T) {
	s, slots := serveConnect(t)
	client := connect.NewClient[ask, answer](s.Client(), s.URL+"/test.Test/Panic")
	_, err := client.CallUnary(context.Background(), request("dave"))
	require.Error(t, err)
	require.Equal(t, algo.Failed, <-slots.outcomes)
	require.Zero(t, slots.inFlight.Load())
}
