package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/bench/peers"
	"github.com/sluice-go/sluice/grpcmw"
	tapping "github.com/sluice-go/sluice/grpcmw/early"
	"github.com/sluice-go/sluice/httpmw"
	denying "github.com/sluice-go/sluice/httpmw/early"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// servePrice denies every request, in one of the ways whose processor time is compared.
func servePrice(ln net.Listener, way string) error {
	if opts, ok := rpcWays()[way]; ok {
		s := grpc.NewServer(opts...)
		s.RegisterService(&description, worker{})
		return s.Serve(ln)
	}
	h, ok := httpWays()[way]
	if !ok {
		return fmt.Errorf("there is no way %q to deny", way)
	}
	srv := &http.Server{Handler: h}
	if way == "listener" {
		return srv.Serve(denying.NewListener(srv, ln, rejects{}))
	}
	return srv.Serve(ln)
}

func httpWays() map[string]http.Handler {
	empty := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	limited := func(opts ...httpmw.Option) http.Handler {
		return httpmw.Limit(rejects{}, keyfunc.Global(), opts...)(empty)
	}
	return map[string]http.Handler{
		"bare": empty,
		"bare, a text": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			peers.Refuse(w)
		}),
		"bare, a text and Retry-After": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			peers.Refuse(w)
		}),
		"httpmw":                limited(),
		"httpmw, no fields":     limited(httpmw.WithHeaders(httpmw.None)),
		"httpmw, no body":       limited(httpmw.WithDenied(empty)),
		"httpmw, with an event": limited(httpmw.WithObserver(func(telemetry.Event) {})),
		"listener":              limited(),
	}
}

func rpcWays() map[string][]grpc.ServerOption {
	bare := func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return nil, status.Error(codes.Unavailable, "overloaded")
	}
	limited := func(opts ...grpcmw.Option) []grpc.ServerOption {
		return []grpc.ServerOption{grpc.UnaryInterceptor(grpcmw.UnaryServerInterceptor(rejects{}, rpckey.Global(), opts...))}
	}
	return map[string][]grpc.ServerOption{
		"status.Error":          {grpc.UnaryInterceptor(bare)},
		"grpcmw":                limited(),
		"grpcmw, with an event": limited(grpcmw.WithObserver(func(telemetry.Event) {})),
		"tap":                   {grpc.InTapHandle(tapping.TapHandle(rejects{}, rpckey.Global()))},
	}
}

// rejects denies everything, to measure the cost of a rejection.
type rejects struct{}

func (rejects) Acquire(context.Context, string, int64) (algo.Lease, error) {
	var l algo.Lease
	l.Reason, l.RetryAfter = algo.Overload, 1
	return l, nil
}
