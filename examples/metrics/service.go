package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// addresses are where the three servers listen.
type addresses struct{ http, grpc, metrics string }

type service struct {
	limits  *limits
	web     *http.Server
	metrics *http.Server
	rpc     *grpc.Server

	onHTTP, onGRPC, onMetrics net.Listener
}

func newService(at addresses, logger *slog.Logger) (*service, error) {
	l, err := newLimits(logger)
	if err != nil {
		return nil, err
	}
	s := &service{limits: l, rpc: grpc.NewServer(l.grpc()...)}
	testpb.RegisterTestServiceServer(s.rpc, greeter{})
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	s.web = &http.Server{Handler: l.http(hello), ReadHeaderTimeout: 5 * time.Second}
	inside := http.NewServeMux()
	inside.Handle("GET /metrics", l.scrape)
	s.metrics = &http.Server{Handler: inside, ReadHeaderTimeout: 5 * time.Second}
	for _, on := range []struct {
		listener *net.Listener
		address  string
	}{{&s.onHTTP, at.http}, {&s.onGRPC, at.grpc}, {&s.onMetrics, at.metrics}} {
		if *on.listener, err = net.Listen("tcp", on.address); err != nil {
			return nil, errors.Join(err, s.stop())
		}
		logger.Info("listening", "address", (*on.listener).Addr().String())
	}
	return s, nil
}

// serve serves until ctx ends or one of the servers fails.
func (s *service) serve(ctx context.Context) error {
	failed := make(chan error, 3)
	go func() { failed <- s.web.Serve(s.onHTTP) }()
	go func() { failed <- s.rpc.Serve(s.onGRPC) }()
	go func() { failed <- s.metrics.Serve(s.onMetrics) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	return errors.Join(err, s.stop())
}

// stop ends the servers that have begun, the metrics last.
func (s *service) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.web.Shutdown(ctx)
	s.rpc.GracefulStop()
	s.limits.denials.Flush()
	err = errors.Join(err, s.metrics.Shutdown(ctx), s.limits.metrics.Close(),
		s.limits.provider.Shutdown(ctx), s.limits.capacity.Close())
	for _, listener := range []net.Listener{s.onHTTP, s.onGRPC, s.onMetrics} {
		if listener != nil {
			_ = listener.Close() // only those whose server has not run are open
		}
	}
	return err
}

// greeter is a gRPC service that is at hand.
type greeter struct {
	testpb.UnimplementedTestServiceServer
}

// EmptyCall answers with nothing.
func (greeter) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}
