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
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/live"
	"github.com/sluice-go/sluice/programs/gateway/ops"
	"github.com/sluice-go/sluice/programs/rls/service"
)

// server is the service with its two addresses.
type server struct {
	file            *config.File
	log             *slog.Logger
	site            *ops.Site
	health          *health.Server
	overload        *adaptive.Limiter // nil: off
	stopping        chan struct{}     // closed when streams shall end
	front           *grpc.Server
	back            *http.Server // for operators
	frontLn, backLn net.Listener
}

// newServer listens on both addresses and is ready to serve.
func newServer(f *config.File, log *slog.Logger) (s *server, err error) {
	s = &server{file: f, log: log, health: health.NewServer(), stopping: make(chan struct{})}
	if s.overload, err = live.NewOverload(f.Overload); err != nil {
		return nil, f.Errorf("overload", "%v", err)
	}
	if s.site, err = ops.NewSite("rls", f, log, func() *adaptive.Limiter { return s.overload }); err != nil {
		return nil, err
	}
	if err = s.assemble(); err == nil {
		s.frontLn, s.backLn, err = s.site.Listen()
	}
	if err != nil {
		return nil, errors.Join(err, s.site.Close())
	}
	return s, nil
}

// assemble makes the service and everything that watches it.
func (s *server) assemble() error {
	limits, err := service.New(s.file, service.Options{
		Store: s.site.Store, Log: s.log, Wrap: s.site.Panel.Wrap, Observe: s.site.Observe,
		Changed: func(limits map[string]ops.Limit) error { return s.site.Show(limits, s.overload) },
	})
	if err != nil {
		return err
	}
	return errors.Join(s.site.Follow(limits.Apply), s.serveBoth(limits),
		s.site.Metrics.Counter("rls_unknown_domains_total", "Descriptors in domains that the file does not have: they have no limit.",
			func() int64 { domains, _ := limits.Unmatched(); return domains }),
		s.site.Metrics.Counter("rls_unknown_descriptors_total", "Descriptors that have no limit in their domain, and are not said to be unlimited.",
			func() int64 { _, descriptors := limits.Unmatched(); return descriptors }))
}

// serveBoth puts the service, health checks and reflection on one gRPC server,
// and the operators' endpoints on the other.
func (s *server) serveBoth(limits *service.Service) error {
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
	around := []grpc.UnaryServerInterceptor{countRequests(s.site.Panel)}
	if s.overload != nil {
		around = append(around, overLimit(s.overload, s.site.Observe))
	}
	opts = append(opts, grpc.ChainUnaryInterceptor(around...))
	s.front = grpc.NewServer(opts...)
	rls.RegisterRateLimitServiceServer(s.front, limits)
	grpc_health_v1.RegisterHealthServer(s.front, s.health)
	reflection.Register(s.front)
	mux := s.site.Mux()
	// No page of a web site may spend limits through the browser of an operator.
	mux.Handle("POST /json", http.NewCrossOriginProtection().Handler(http.HandlerFunc(limits.ServeJSON)))
	s.back = s.site.Server(mux)
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
	s.site.Ready.Set(yes)
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
	serve := []func() error{func() error { return s.front.Serve(s.frontLn) }, func() error { return s.back.Serve(s.backLn) }}
	err := s.site.Run(ctx, s.setServing, serve, func(ctx context.Context) { s.site.Watcher.Run(ctx, poll, hup) })
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
	if s.overload != nil {
		_ = s.overload.Close() // it never fails
	}
	return errors.Join(s.back.Close(), s.site.Close())
}
