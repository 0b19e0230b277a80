package ops

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/live"
)

// Site is what every program has beside its limits: the store, the second address with metrics
// and the admin page, the log of denials, and the order in which it starts and stops.
type Site struct {
	Store    *distributed.Store // nil: limits are kept in this process
	Metrics  *Metrics
	Panel    *Panel
	Ready    Readiness
	Watcher  *reload.Watcher
	Observe  telemetry.Observer // of all decisions
	denials  *Denials
	overload func() *adaptive.Limiter
	file     *config.File
	log      *slog.Logger
	close    []func() error
}

// NewSite opens the store of f. overload is asked for the limiter that is shown; it may answer nil.
func NewSite(program string, f *config.File, log *slog.Logger, overload func() *adaptive.Limiter) (s *Site, err error) {
	s = &Site{file: f, log: log, overload: overload}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	store, closeStore, err := live.OpenStore(program, f.Store, log, nil)
	if err != nil {
		return s, f.Errorf("redis", "%v", err)
	}
	s.Store, s.close = store, append(s.close, closeStore)
	s.ping()
	if s.Panel, err = NewPanel(f, program, store, log); err != nil {
		return s, err
	}
	s.close = append(s.close, s.Panel.Close)
	if s.denials, err = NewDenials(log, s.Panel); err != nil {
		return s, err
	}
	if s.Metrics, err = NewMetrics(overload); err != nil {
		return s, err
	}
	s.Observe = telemetry.Tee(s.Metrics.Observe, s.Panel.Observe, s.denials.Observe)
	return s, s.Metrics.About(Version(), store)
}

// ping logs at the start what decides while Redis does not. The program starts all the same.
func (s *Site) ping() {
	if s.Store == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.Store.Ping(ctx); err != nil {
		now := s.Store.Stats()
		s.log.Warn("Redis is away at the start", "code", "gateway.without_redis", "decides", now.WithoutRedis(),
			"do", "look at Redis and at the network to it; no restart is needed", "error", err)
	}
}

// Version is the version of the program, as far as the build recorded it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	parts := []string{info.Main.Version, info.GoVersion}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			parts = append(parts, s.Value)
		}
	}
	return strings.Join(parts, " ")
}

// Show tells operators the limits in force, by their names.
func (s *Site) Show(limits map[string]Limit, overload *adaptive.Limiter) error {
	s.Metrics.Show(limits)
	return s.Panel.Show(limits, overload)
}

// Follow puts changes of the file in force by apply.
func (s *Site) Follow(apply func(*config.File) error) error {
	s.Watcher = live.NewWatcher(s.file, s.log, s.Panel.Following(apply))
	return s.Metrics.Watch(s.Watcher)
}

// Mux is the second address.
func (s *Site) Mux() *http.ServeMux {
	return Mux(Handlers{Ready: &s.Ready, Status: func() any { return s.Panel.Status(s.Watcher, s.overload()) }, Metrics: s.Metrics, Page: s.Panel})
}

// Server serves one of the addresses with the timeouts of the file.
func (s *Site) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: s.file.Timeouts.ReadHeader, IdleTimeout: s.file.Timeouts.Idle,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}

// Listen opens both addresses.
func (s *Site) Listen() (front, back net.Listener, err error) {
	if front, err = net.Listen("tcp", s.file.Listen); err != nil {
		return nil, nil, s.file.Errorf("listen", "%v", err)
	}
	if back, err = net.Listen("tcp", s.file.Admin); err != nil {
		return nil, nil, errors.Join(s.file.Errorf("admin", "%v", err), front.Close())
	}
	s.log.Info("serving", "listen", front.Addr().String(), "admin", back.Addr().String())
	return front, back, nil
}

// Run calls serve for each address and background, until ctx ends or an address fails. Then ready
// says no, so that balancers choose other instances, for the time that the file gives them,
// and background has ended when it returns.
func (s *Site) Run(ctx context.Context, ready func(bool), serve []func() error, background ...func(context.Context)) (err error) {
	failed := make(chan error, len(serve))
	for _, one := range serve {
		go func() { failed <- one() }()
	}
	watch, stopWatching := context.WithCancel(ctx)
	var behind sync.WaitGroup
	for _, one := range append(background, s.remind) {
		behind.Go(func() { one(watch) })
	}
	ready(true)
	select {
	case err = <-failed:
	case <-ctx.Done():
		ready(false)
		s.log.Info("stopping", "unready", s.file.Timeouts.Unready, "drain", s.file.Timeouts.Drain)
		time.Sleep(s.file.Timeouts.Unready)
	}
	stopWatching()
	behind.Wait()
	return err
}

// remind logs once a day which limits are on trial.
func (s *Site) remind(ctx context.Context) {
	for tick := time.NewTicker(24 * time.Hour); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
			s.Panel.remind()
		}
	}
}

// Close releases everything, the store last.
func (s *Site) Close() (err error) {
	if s.denials != nil {
		s.denials.Flush()
	}
	for i := len(s.close) - 1; i >= 0; i-- {
		err = errors.Join(err, s.close[i]())
	}
	return err
}
