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
	"github.com/sluice-go/sluice/programs/gateway/command"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/ops"
	"github.com/sluice-go/sluice/programs/gateway/proxy"
)

// server is a gateway with its two addresses.
type server struct {
	file            *config.File
	log             *slog.Logger
	site            *ops.Site
	gateway         *proxy.Gateway
	front, back     *http.Server // for clients, for operators
	frontLn, backLn net.Listener
	out             io.Writer // of the access log
}

// newServer listens on both addresses and is ready to serve.
func newServer(f *config.File, log *slog.Logger, out io.Writer) (s *server, err error) {
	s = &server{file: f, log: log, out: out}
	if s.site, err = ops.NewSite("gateway", f, log, func() *adaptive.Limiter { return s.gateway.Overload() }); err != nil {
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

// assemble makes the gateway and everything that watches it.
func (s *server) assemble() (err error) {
	s.gateway, err = proxy.New(s.file, proxy.Options{Store: s.site.Store, Log: s.log, Wrap: s.site.Panel.Wrap, Changed: s.site.Show, Observe: s.site.Observe})
	if err != nil {
		return err
	}
	s.front = s.site.Server(proxy.Served(s.gateway, s.served()))
	s.front.Protocols = frontProtocols()
	if s.front.TLSConfig, err = s.file.TLS.Config(); err != nil {
		return s.file.Errorf("tls", "%v", err)
	}
	s.back = s.site.Server(s.site.Mux())
	return errors.Join(s.site.Follow(s.gateway.Apply), s.site.Metrics.Load(s.gateway.InFlight, s.gateway.Bodies))
}

// served counts answered requests, each once, and writes the access log.
func (s *server) served() func(*http.Request, proxy.Request) {
	log := func(*http.Request, proxy.Request) {}
	switch s.file.AccessLog {
	case "text":
		log = proxy.AccessLog(slog.New(slog.NewTextHandler(s.out, command.LogOptions)))
	case "json":
		log = proxy.AccessLog(slog.New(slog.NewJSONHandler(s.out, command.LogOptions)))
	}
	return func(r *http.Request, is proxy.Request) {
		s.site.Metrics.Request(is.Route, r.Method, is.Status, is.Duration, is.Upstream)
		s.site.Panel.CountRequest(!is.Denied)
		log(r, is)
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

// Serve serves until ctx ends, and then stops in order: first it reports that
// it is not ready, then it accepts no new connections, then it waits for
// running requests, and the second address closes last.
func (s *server) Serve(ctx context.Context, poll time.Duration, hup <-chan os.Signal) error {
	serve := []func() error{s.serveFront, func() error { return s.back.Serve(s.backLn) }}
	err := s.site.Run(ctx, s.site.Ready.Set, serve, s.saveUntil, func(ctx context.Context) { s.site.Watcher.Run(ctx, poll, hup) })
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
	return errors.Join(err, s.back.Close(), s.site.Close())
}
