package proxy

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/live"
	"github.com/sluice-go/sluice/programs/gateway/ops"
)

// Options are the parts of a gateway that do not come from its file.
type Options struct {
	Store   *distributed.Store // nil: limits are kept in this process
	Observe telemetry.Observer // may be nil
	Log     *slog.Logger
	// Wrap, if not nil, puts something around each limiter that is made, such as
	// an operator's switch.
	Wrap func(id string, l algo.Limiter) algo.Limiter
	// Changed, if not nil, receives the limits in force by their names, and the
	// overload protection, nil if it is off, whenever they may have changed. An error is logged.
	Changed func(limits map[string]ops.Limit, overload *adaptive.Limiter) error
}

// Gateway is an http.Handler that serves the routes of the file in force.
type Gateway struct {
	opts      Options
	limiters  *reload.Limits
	transport *transports
	journal   *live.Journal // nil: no snapshots
	random    []byte        // pepper where the file names none
	failures  *algo.RateLimiter
	passed    *algo.RateLimiter // lines about proxies that are not trusted
	current   atomic.Pointer[generation]
	Upgraded  Upgraded
	bodies    atomic.Int64

	mu       sync.Mutex // one change at a time
	file     *config.File
	limits   map[string]algo.Limiter // of file
	tokens   *config.Tokens          // nil: the file has no jwt
	overload *guard
	inFlight inFlightLimits
}

// New makes a gateway and puts f in force.
func New(f *config.File, opts Options) (*Gateway, error) {
	transport, err := newTransports(f)
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		opts:      opts,
		limiters:  live.NewLimiters(opts.Store, opts.Wrap),
		transport: transport,
		random:    config.RandomPepper(),
		failures:  algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(5))),
		passed:    algo.Must(algo.NewTokenBucket(algo.PerMinute(1))),
	}
	if f.Snapshot.File != "" {
		g.journal = live.NewJournal(f.Snapshot.File)
	}
	if err := g.Apply(f); err != nil {
		return nil, err
	}
	g.restore(f)
	return g, nil
}

// restore charges the debts from before a restart. Without it the limits begin anew, which
// is better than no gateway.
func (g *Gateway) restore(f *config.File) {
	if g.journal == nil {
		return
	}
	keys, err := g.journal.Restore(g.limits)
	if err != nil {
		g.opts.Log.Warn("snapshot not read, some limits begin anew", "file", f.Snapshot.File, "keys", keys, "error", err)
		return
	}
	g.opts.Log.Info("snapshot read", "file", f.Snapshot.File, "keys", keys)
}

// Save writes the snapshot of the debts, if the file names one.
func (g *Gateway) Save() {
	if g.journal == nil {
		return
	}
	g.mu.Lock()
	limits := g.limits
	g.mu.Unlock()
	if err := g.journal.Save(limits); err != nil {
		g.opts.Log.Error("snapshot not written, a restart forgets debt since the last one", "error", err)
	}
}

// ServeHTTP serves a request under the configuration in force when it came,
// to its end.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gen := g.enter()
	defer gen.leave()
	g.Upgraded.follow(gen.handler).ServeHTTP(w, r)
}

// enter joins the generation in force. One that retires in between cannot be
// joined any more, but then there is a newer one.
func (g *Gateway) enter() *generation {
	for {
		if gen := g.current.Load(); gen.join() {
			return gen
		}
	}
}

// Apply puts f in force. Running requests end under the configuration with
// which they began; no request waits, and limits that stay keep their debts.
// After an error nothing has changed.
func (g *Gateway) Apply(f *config.File) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refuse(f); err != nil {
		return err
	}
	callers, err := g.callers(f)
	if err != nil {
		return err
	}
	guard, err := g.guardFor(f)
	if err != nil {
		return f.Errorf("overload", "%v", err)
	}
	inFlight, err := g.limitsInFlight(f)
	if err != nil {
		return f.Errorf("", "%v", err)
	}
	var limits map[string]algo.Limiter
	var handler http.Handler
	changes, err := g.limiters.Apply(wanted(f), func(all map[string]algo.Limiter) (err error) {
		limits = all
		handler, err = g.assemble(f, all, guard, callers, inFlight)
		return err
	})
	if err != nil {
		return f.Errorf("", "%v", err)
	}
	g.inFlight, g.tokens, g.limits = inFlight, callers.Tokens, limits
	g.install(f, handler, guard)
	g.tell(callers)
	f.LogWarnings(g.opts.Log)
	g.opts.Log.Info("configuration loaded", "file", f.Path, "hash", f.Hash, "routes", len(f.Routes),
		"kept", changes.Kept, "adjusted", changes.Adjusted, "added", changes.Added,
		"removed", changes.Removed, "begun_anew", changes.Replaced, "changed", changes.Changed)
	return nil
}

// callers reads the settings that are needed to find the keys of requests.
func (g *Gateway) callers(f *config.File) (c config.Callers, err error) {
	c.Trusted = f.Trusted
	if c.Pepper, err = f.Pepper.Read(); err != nil {
		return c, f.Errorf("pepper", "%v", err)
	}
	if c.Pepper == nil {
		c.Pepper = g.random
	}
	if c.Tokens, err = f.JWT.Open(g.tokens); err != nil {
		return c, f.Errorf("jwt.keys", "%v", err)
	}
	return c, nil
}

// tell shows operators the limits in force.
func (g *Gateway) tell(callers config.Callers) {
	if g.opts.Changed == nil {
		return
	}
	shown := map[string]ops.Limit{}
	for _, l := range Limits(g.file) {
		// The key function was made from the same keys before.
		id, _ := callers.Identity(l.Keys)
		shown[l.Name] = ops.Limit{Limiter: g.limits[l.Name], Text: l.Spec.String(), Trial: l.Shadow, Identity: id}
	}
	var overload *adaptive.Limiter
	if g.overload != nil {
		overload = g.overload.limiter
	}
	if err := g.opts.Changed(shown, overload); err != nil {
		g.opts.Log.Error("operators do not see all limits", "error", err)
	}
}

// refuse names changes that are impossible while the gateway runs.
func (g *Gateway) refuse(f *config.File) error {
	if len(f.Routes) == 0 {
		return f.Errorf("routes", "is missing, and a gateway without routes serves nothing")
	}
	if g.file == nil {
		return nil
	}
	return f.Restart(g.file)
}

// wanted is every limit of f once.
func wanted(f *config.File) map[string]algo.Spec {
	all := map[string]algo.Spec{}
	for _, l := range Limits(f) {
		all[l.Name] = l.Spec
	}
	return all
}

// Limits returns every limit of f once.
func Limits(f *config.File) (all []*config.Limit) {
	seen := map[string]bool{}
	add := func(limits []*config.Limit) {
		for _, l := range limits {
			if !seen[l.Name] {
				seen[l.Name] = true
				all = append(all, l)
			}
		}
	}
	add(f.Limits)
	for _, r := range f.Routes {
		add(r.Limits)
	}
	return all
}

// install makes handler the one in force and retires the one before.
func (g *Gateway) install(f *config.File, handler http.Handler, overload *guard) {
	before := g.current.Swap(newGeneration(handler))
	replaced := g.overload
	g.file, g.overload = f, overload
	if before == nil {
		return
	}
	before.retire(func() {
		if replaced != nil && replaced != overload {
			_ = replaced.limiter.Close() // it never fails
		}
	})
}

// Overload is the overload protection in force, nil if it is off.
func (g *Gateway) Overload() *adaptive.Limiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.overload == nil {
		return nil
	}
	return g.overload.limiter
}

// Running counts the requests that run under the configuration in force.
func (g *Gateway) Running() int64 { return g.current.Load().running.Load() - 1 }

// Bodies counts the requests with a body that are with an upstream, or on their way to it.
func (g *Gateway) Bodies() int64 { return g.bodies.Load() }

// Close releases the resources of the gateway. Call it when no request is
// running.
func (g *Gateway) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.overload != nil {
		_ = g.overload.limiter.Close() // it never fails
	}
	g.transport.CloseIdleConnections()
}
