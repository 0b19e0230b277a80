package main

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/rpc"
	"github.com/sluice-go/sluice/keyfunc"
)

// connectAPI needs no adapter: a handler of connect is an http.Handler, and
// httpmw answers Connect, gRPC and gRPC-Web calls in their own protocol. With
// each procedure registered by its name, keyfunc.Route is the procedure. The
// service is one that comes with grpc-go, to need no generated code.
func connectAPI(users, slots algo.Limiter) *http.ServeMux {
	inFlight := httpmw.Limit(slots, keyfunc.Global(), httpmw.WithDenied(rpc.Denied(nil)))
	quota := httpmw.Limit(users, userAndRoute, httpmw.WithDenied(rpc.Denied(nil)))
	mux := http.NewServeMux()
	mux.Handle(grpc_health_v1.Health_Check_FullMethodName, inFlight(quota(
		connect.NewUnaryHandler(grpc_health_v1.Health_Check_FullMethodName, check))))
	mux.Handle(grpc_health_v1.Health_Watch_FullMethodName, inFlight(quota(
		connect.NewServerStreamHandler(grpc_health_v1.Health_Watch_FullMethodName, watch))))
	return mux
}

func check(_ context.Context, _ *connect.Request[grpc_health_v1.HealthCheckRequest]) (
	*connect.Response[grpc_health_v1.HealthCheckResponse], error) {
	return connect.NewResponse(serving()), nil
}

func watch(_ context.Context, _ *connect.Request[grpc_health_v1.HealthCheckRequest],
	stream *connect.ServerStream[grpc_health_v1.HealthCheckResponse]) error {
	return stream.Send(serving())
}

func serving() *grpc_health_v1.HealthCheckResponse {
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}
}
