package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/examples/gateway/command"
	"github.com/sluice-go/sluice/examples/gateway/config"
	"github.com/sluice-go/sluice/examples/gateway/live"
	"github.com/sluice-go/sluice/examples/gateway/ops"
	"github.com/sluice-go/sluice/examples/rls/service"
)

// server is the service with its two addresses.
type server struct {
	file       *config.File
	log        *slog.Logger
	watcher    *reload.Watcher
	denials    *ops.Denials
	ready      ops.Readiness
	health     *health.Server
	overload   *adaptive.Limiter // nil: off
	stopping   chan struct{}     // closed when streams shall end
	front      *grpc.Server
	back       *http.Server // for operators
	frontLn    net.Listener
	backLn     net.Listener
	closeStore func() error
}

// newServer listens on both addresses and is ready to serve.
func newServer(f *config.File, log *slog.Logger) (*server, error) {
	s := &server{file: f, log: log, health: health.NewServer(), stopping: make(chan struct{})}
	store, closeStore, err := live.OpenStore("rls", f.Store, log, nil)
	if err != nil {
		return nil, f.Errorf("redis", "%v", err)
	}
	s.closeStore = closeStore
	if err = s.assemble(store); err == nil {
		err = s.listen()
	}
	if err != nil {
		return nil, errors.Join(err, s.closeStore())
	}
	return s, nil
}

// assemble makes the service and everything that watches it.
func (s *server) assemble(store *distributed.Store) error {
	var err error
	if s.overload, err = live.NewOverload(s.file.Overload); err != nil {
		return s.file.Errorf("overload", "%v", err)
	}
	metrics, err := ops.NewMetrics(func() *adaptive.Limiter { return s.overload })
	if err != nil {
		return err
	}
	if err := metrics.About(command.Version(), store); err != nil {
		return err
	}
	panel, err := ops.NewPanel(s.file, "rls", store, s.log)
	if err != nil {
		return err
	}
	closeStore := s.closeStore
	s.closeStore = func() error { return errors.Join(panel.Close(), closeStore()) }
	if s.denials, err = ops.NewDenials(s.log, panel); err != nil {
		return err
	}
	observe := telemetry.Tee(metrics.Observe, panel.Observe, s.denials.Observe)
	limits, err := service.New(s.file, service.Options{
		Store: store, Log: s.log, Wrap: panel.Wrap, Observe: observe,
		Changed: func(limits map[string]ops.Limit) error {
			metrics.Show(limits)
			return panel.Show(limits, s.overload)
		},
	})
	if err != nil {
		return err
	}
	s.watcher = live.NewWatcher(s.file, s.log, panel.Following(limits.Apply))
	if err := s.serveBoth(limits, observe, panel, ops.Handlers{Ready: &s.ready, Status: func() any { return panel.Status(s.watcher, s.overload) }, Metrics: metrics, Page: panel}); err != nil {
		return err
	}
	return metrics.Watch(s.watcher)
}

// serveBoth puts the service, health checks and reflection on one gRPC server,
// and the operators' endpoints on the other.
func (s *server) serveBoth(limits *service.Service, observe telemetry.Observer, panel *ops.Panel, operators ops.Handlers) error {
	opts := []grpc.ServerOption{grpc.KeepaliveParams(keepalive.ServerParameters{
		MaxConnectionAge: s.file.GRPC.MaxAge, MaxConnectionAgeGrace: s.file.GRPC.Grace,
	}),
		// A connection on which nothing comes is waited for at the end, too.
		grpc.ConnectionTimeout(min(s.file.Timeouts.ReadHeader, s.file.Timeouts.Drain)),
		grpc.StreamInterceptor(s.untilStop),
	}
	secure, err := s.file.TLS.Config()
	if err != nil {
		return s.file.Errorf("tls", "%v", err)
	}
	if secure != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(secure)))
	}
	around := []grpc.UnaryServerInterceptor{countRequests(panel)}
	if s.overload != nil {
		around = append(around, overLimit(s.overload, observe))
	}
	opts = append(opts, grpc.ChainUnaryInterceptor(around...))
	s.front = grpc.NewServer(opts...)
	rls.RegisterRateLimitServiceServer(s.front, limits)
	grpc_health_v1.RegisterHealthServer(s.front, s.health)
	reflection.Register(s.front)
	mux := ops.Mux(operators)
	// No page of a web site may spend limits through the browser of an operator.
	mux.Handle("POST /json", http.NewCrossOriginProtection().Handler(http.HandlerFunc(limits.ServeJSON)))
	s.back = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: s.file.Timeouts.ReadHeader,
		IdleTimeout:       s.file.Timeouts.Idle,
	}
	return nil
}

func (s *server) listen() (err error) {
	if s.frontLn, err = net.Listen("tcp", s.file.Listen); err != nil {
		return s.file.Errorf("listen", "%v", err)
	}
	if s.backLn, err = net.Listen("tcp", s.file.Admin); err != nil {
		return errors.Join(s.file.Errorf("admin", "%v", err), s.frontLn.Close())
	}
	return nil
}

// countRequests counts calls for the page, each once, however many limits it met.
func countRequests(panel *ops.Panel) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		if answer, ok := resp.(*rls.RateLimitResponse); ok {
			panel.CountRequest(err == nil && answer.GetOverallCode() == rls.RateLimitResponse_OK)
		}
		return resp, err
	}
}

// setServing says to health checks of both kinds whether calls are welcome.
func (s *server) setServing(yes bool) {
	s.ready.Set(yes)
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if yes {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(rls.RateLimitService_ServiceDesc.ServiceName, status)
}

// Serve serves until ctx ends, and then stops in the order of the gateway: not
// ready, nothing new, what runs, the second address.
func (s *server) Serve(ctx context.Context, poll time.Duration, hup <-chan os.Signal) error {
	failed := make(chan error, 2)
	go func() { failed <- s.front.Serve(s.frontLn) }()
	go func() { failed <- s.back.Serve(s.backLn) }()
	watch, stopWatching := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); s.watcher.Run(watch, poll, hup) }()
	s.setServing(true)
	s.log.Info("serving", "listen", s.frontLn.Addr().String(), "admin", s.backLn.Addr().String())

	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.setServing(false)
		s.log.Info("stopping", "unready", s.file.Timeouts.Unready, "drain", s.file.Timeouts.Drain)
		time.Sleep(s.file.Timeouts.Unready)
	}
	stopWatching()
	<-watched
	return errors.Join(err, s.stop())
}

// untilStop ends streams when the service stops. Those of health checks and of
// reflection would last as long as their clients.
func (s *server) untilStop(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ended := make(chan error, 1)
	go func() { ended <- handler(srv, stream) }()
	select {
	case err := <-ended:
		return err
	case <-s.stopping:
		return status.Error(codes.Unavailable, "the service stops")
	}
}

// stop waits for calls that run, as long as the file allows.
func (s *server) stop() error {
	timer := time.AfterFunc(s.file.Timeouts.Drain, func() {
		s.log.Warn("drain timed out, open calls were cut off", "drain", s.file.Timeouts.Drain)
		s.front.Stop()
	})
	defer timer.Stop()
	close(s.stopping)
	s.front.GracefulStop()
	s.denials.Flush()
	if s.overload != nil {
		_ = s.overload.Close() // it never fails
	}
	return errors.Join(s.back.Close(), s.closeStore())
}
