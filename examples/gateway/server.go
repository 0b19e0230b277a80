package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/examples/gateway/command"
	"github.com/sluice-go/sluice/examples/gateway/config"
	"github.com/sluice-go/sluice/examples/gateway/live"
	"github.com/sluice-go/sluice/examples/gateway/ops"
	"github.com/sluice-go/sluice/examples/gateway/proxy"
)

// server is a gateway with its two addresses.
type server struct {
	file       *config.File
	log        *slog.Logger
	gateway    *proxy.Gateway
	watcher    *reload.Watcher
	denials    *ops.Denials
	ready      ops.Readiness
	front      *http.Server // for clients
	back       *http.Server // for operators
	frontLn    net.Listener
	backLn     net.Listener
	closeStore func() error
	out        io.Writer // of the access log
}

// newServer listens on both addresses and is ready to serve.
func newServer(f *config.File, log *slog.Logger, out io.Writer) (*server, error) {
	s := &server{file: f, log: log, out: out}
	store, closeStore, err := live.OpenStore("gateway", f.Store, log, nil)
	if err != nil {
		return nil, f.Errorf("redis", "%v", err)
	}
	s.closeStore = closeStore
	if err := s.assemble(store); err != nil {
		return nil, errors.Join(err, s.closeStore())
	}
	if err := s.listen(); err != nil {
		return nil, errors.Join(err, s.closeStore())
	}
	return s, nil
}

// assemble makes the gateway and everything that watches it.
func (s *server) assemble(store *distributed.Store) error {
	metrics, err := ops.NewMetrics(func() *adaptive.Limiter { return s.gateway.Overload() })
	if err != nil {
		return err
	}
	if err := metrics.About(command.Version(), store); err != nil {
		return err
	}
	panel, err := ops.NewPanel(s.file, "gateway", store, s.log)
	if err != nil {
		return err
	}
	closeStore := s.closeStore
	s.closeStore = func() error { return errors.Join(panel.Close(), closeStore()) }
	if s.denials, err = ops.NewDenials(s.log, panel); err != nil {
		return err
	}
	s.gateway, err = proxy.New(s.file, proxy.Options{
		Store: store, Log: s.log, Wrap: panel.Wrap,
		Changed: func(limits map[string]ops.Limit, overload *adaptive.Limiter) error {
			metrics.Show(limits)
			return panel.Show(limits, overload)
		},
		Observe: telemetry.Tee(metrics.Observe, panel.Observe, s.denials.Observe),
	})
	if err != nil {
		return err
	}
	s.watcher = live.NewWatcher(s.file, s.log, panel.Following(s.gateway.Apply))
	s.front = s.newHTTP(proxy.Served(s.gateway, s.served(metrics, panel)))
	s.front.Protocols = frontProtocols()
	if s.front.TLSConfig, err = s.file.TLS.Config(); err != nil {
		return s.file.Errorf("tls", "%v", err)
	}
	s.back = s.newHTTP(ops.Mux(ops.Handlers{Ready: &s.ready, Status: func() any { return panel.Status(s.watcher, s.gateway.Overload()) }, Metrics: metrics, Page: panel}))
	return errors.Join(metrics.Watch(s.watcher), metrics.Load(s.gateway.InFlight, s.gateway.Bodies))
}

// served counts answered requests, each once, and writes the access log.
func (s *server) served(metrics *ops.Metrics, panel *ops.Panel) func(*http.Request, proxy.Request) {
	log := func(*http.Request, proxy.Request) {}
	switch s.file.AccessLog {
	case "text":
		log = proxy.AccessLog(slog.New(slog.NewTextHandler(s.out, nil)))
	case "json":
		log = proxy.AccessLog(slog.New(slog.NewJSONHandler(s.out, nil)))
	}
	return func(r *http.Request, is proxy.Request) {
		metrics.Request(is.Route, r.Method, is.Status, is.Duration, is.Upstream)
		panel.CountRequest(!is.Denied)
		log(r, is)
	}
}

func (s *server) newHTTP(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: s.file.Timeouts.ReadHeader,
		IdleTimeout:       s.file.Timeouts.Idle,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}

// frontProtocols are HTTP/1.1 and HTTP/2, the latter without TLS too: gRPC clients
// within a cluster use it.
func frontProtocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetHTTP2(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// serveFront serves clients, with TLS if the file says so.
func (s *server) serveFront() error {
	if s.front.TLSConfig != nil {
		return s.front.ServeTLS(s.frontLn, "", "")
	}
	return s.front.Serve(s.frontLn)
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

// Serve serves until ctx ends, and then stops in order: first it reports that
// it is not ready, so that balancers choose other instances, then it accepts
// no new connections, then it waits for running requests, and the second
// address closes last.
func (s *server) Serve(ctx context.Context, poll time.Duration, hup <-chan os.Signal) error {
	failed := make(chan error, 2)
	go func() { failed <- s.serveFront() }()
	go func() { failed <- s.back.Serve(s.backLn) }()
	watch, stopWatching := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() { defer close(watched); s.watcher.Run(watch, poll, hup) }()
	saved := make(chan struct{})
	go func() { defer close(saved); s.saveUntil(watch) }()
	s.ready.Set(true)
	s.log.Info("serving", "listen", s.frontLn.Addr().String(), "admin", s.backLn.Addr().String())

	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.ready.Set(false)
		s.log.Info("stopping", "unready", s.file.Timeouts.Unready, "drain", s.file.Timeouts.Drain)
		time.Sleep(s.file.Timeouts.Unready)
	}
	stopWatching()
	<-watched
	<-saved
	return errors.Join(err, s.stop())
}

// saveUntil writes the snapshots that the file asks for, until ctx ends.
func (s *server) saveUntil(ctx context.Context) {
	if s.file.Snapshot.File == "" {
		return
	}
	for tick := time.NewTicker(s.file.Snapshot.Every); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			s.gateway.Save()
		}
	}
}

// stop waits for requests that run, as long as the file allows, and ends
// those that take longer.
func (s *server) stop() error {
	drain, cancel := context.WithTimeout(context.Background(), s.file.Timeouts.Drain)
	defer cancel()
	err := s.front.Shutdown(drain)
	upgraded := s.gateway.Upgraded.Wait(drain)
	if errors.Is(err, context.DeadlineExceeded) || upgraded > 0 {
		s.log.Warn("drain timed out, open requests were cut off", "drain", s.file.Timeouts.Drain,
			"requests", s.gateway.Running()-int64(upgraded), "upgraded", upgraded)
		s.gateway.Upgraded.Close()
		err = s.front.Close()
	}
	s.gateway.Save()
	s.gateway.Close()
	s.denials.Flush()
	return errors.Join(err, s.back.Close(), s.closeStore())
}
