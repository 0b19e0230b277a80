package ops

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// Panel is the admin page over limits that come and go.
type Panel struct {
	*admin.Admin
	store *distributed.Store
	// Wrap makes limits controllable, if anybody may act. It is nil otherwise.
	Wrap  func(id string, l algo.Limiter) algo.Limiter
	keys  *rules.Rules                     // limits of single keys, and switches, in all instances; nil with a local store
	allow atomic.Pointer[authorize]        // by the token; nil: there is none
	file  atomic.Pointer[config.File]      // in force
	shown atomic.Pointer[map[string]Limit] // in force
	log   *slog.Logger
}

type authorize func(*http.Request) error

// NewPanel makes the page. With a token, its holders may look and act; without
// one, clients on this machine may look.
func NewPanel(f *config.File, title string, store *distributed.Store, log *slog.Logger) (*Panel, error) {
	allow, err := byToken(f)
	if err != nil {
		return nil, err
	}
	opts := []admin.Option{admin.WithTitle(title), admin.WithLogger(log)}
	p := &Panel{store: store, log: log}
	p.file.Store(f)
	if allow != nil {
		p.allow.Store(&allow)
		check := func(r *http.Request) error { return (*p.allow.Load())(r) }
		opts = append(opts, admin.WithAuthorize(check), admin.WithAuthorizeRead(check))
		if store != nil {
			if p.keys, err = rules.New(context.Background(), store, "keys", rules.WithLogger(log)); err != nil {
				return nil, err
			}
		}
		p.Wrap = func(id string, l algo.Limiter) algo.Limiter {
			if p.keys != nil {
				l = p.keys.Over(config.Shortened(id, 90), l)
			}
			return admin.Control(l)
		}
	}
	if f.ShowKeys {
		opts = append(opts, admin.WithClearKeys())
	}
	p.Admin, err = admin.New(opts...)
	return p, err
}

// Close ends what the page follows. It comes before the end of the store.
func (p *Panel) Close() error {
	if p.keys == nil {
		return nil
	}
	return p.keys.Close()
}

// byToken allows the holders of the token of a file; nil if it has none.
func byToken(f *config.File) (authorize, error) {
	token, err := f.AdminToken.Read()
	const least = 16 // admin.Bearer panics below
	switch {
	case err != nil:
		return nil, f.Errorf("admin_token", "%v", err)
	case token == nil:
		return nil, nil
	case len(token) < least:
		return nil, f.Errorf("admin_token", "has %d bytes, want %d or more", len(token), least)
	}
	return admin.Bearer(string(token)), nil
}

// Following is apply and then, if it succeeds, the token of the new file, from which on
// the one before is refused.
func (p *Panel) Following(apply func(*config.File) error) func(*config.File) error {
	return func(f *config.File) error {
		allow, err := byToken(f)
		if err == nil {
			err = apply(f)
		}
		if err != nil {
			return err
		}
		p.file.Store(f)
		if allow != nil {
			p.allow.Store(&allow)
		}
		return nil
	}
}

// Status is the content of /status.
type Status struct {
	Config struct {
		reload.Status
		Hash string `json:"hash"` // of the contents in force
	} `json:"config"`
	Overload  string   `json:"overload"`
	Decides   string   `json:"decides"`    // who decides about the limits now, and without Redis with which share
	LimitsOff []string `json:"limits_off"` // limits that deny nothing, with the reason and the end
}

// Status describes the file in force, as w knows it, and the overload protection, nil if it is off.
func (p *Panel) Status(w *reload.Watcher, overload *adaptive.Limiter) (s Status) {
	s.Config.Status, s.Config.Hash, s.Overload = w.Status(), p.file.Load().Hash, "off"
	off, trial := p.off()
	s.LimitsOff = append([]string{}, off...)
	for _, name := range trial {
		s.LimitsOff = append(s.LimitsOff, name+": on trial")
	}
	if overload != nil {
		s.Overload = overload.Explain().String()
	}
	s.Decides = p.decides()
	return s
}

// decides says who decides about the limits now. A node that has not answered yet is away.
func (p *Panel) decides() string {
	if p.store == nil {
		return "this process"
	}
	st := p.store.Stats()
	switch {
	case st.Away == 0 && st.RoundTrip > 0:
		return "Redis"
	case st.Away < st.Nodes && st.RoundTrip > 0:
		return fmt.Sprintf("Redis; for %d of %d nodes: %s", st.Away, st.Nodes, st.WithoutRedis())
	}
	return st.WithoutRedis()
}

// Limit is a limit in force as the page shows it.
type Limit struct {
	Limiter  algo.Limiter
	Text     string // as the file has it
	Trial    bool   // it denies nothing
	Identity config.Identity
}

// InForce returns the limiter as requests meet it.
func (l Limit) InForce() algo.Limiter {
	if l.Trial {
		return algo.Shadow(l.Limiter)
	}
	return l.Limiter
}

// mostShown is how many limits the page has room for, beside the protection.
const mostShown = 60

// Show puts the limits in force on the page, by their names. With more than it
// has room for, it shows only the events of the others.
func (p *Panel) Show(limits map[string]Limit, overload *adaptive.Limiter) error {
	var opts []admin.Option
	for i, name := range slices.Sorted(maps.Keys(limits)) {
		if i >= mostShown {
			break
		}
		l := limits[name]
		opts = append(opts, admin.WithPolicy(name, l.InForce()))
		if l.Text != "" && len(l.Text) <= mostText {
			opts = append(opts, admin.WithText(name, l.Text))
		}
		if l.Identity.Key != nil {
			opts = append(opts, admin.WithIdentity(name, l.Identity.Parts, l.Identity.Key))
		}
	}
	p.shown.Store(&limits)
	p.remind()
	if overload != nil {
		opts = append(opts, admin.WithAdaptive("overload", overload))
	}
	if p.store != nil {
		opts = append(opts, admin.WithStore("redis", p.store))
	}
	if err := p.Update(opts...); err != nil {
		return fmt.Errorf("the admin page: %w", err)
	}
	return nil
}

// off names the limits that an operator has switched off, with the end and the reason, and those on trial.
func (p *Panel) off() (off, trial []string) {
	limits := p.shown.Load()
	if limits == nil {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(*limits)) {
		l := (*limits)[name]
		if l.Trial {
			trial = append(trial, name)
		}
		if c, ok := l.Limiter.(*admin.Controlled); ok {
			if is, until, why := c.SwitchedOff(); is {
				off = append(off, fmt.Sprintf("%s: off until %s: %s", name, until.UTC().Format(time.RFC3339), why))
			}
		}
	}
	return off, trial
}

// remind logs the limits that deny nothing.
func (p *Panel) remind() {
	off, trial := p.off()
	if len(trial) > 0 {
		p.log.Warn("limits on trial deny nothing", "code", "gateway.trial", "limits", trial, "do", "remove shadow: true to put them in force")
	}
	if len(off) > 0 {
		p.log.Warn("limits are switched off and deny nothing", "code", "gateway.switched_off", "limits", off, "do", "switch them on at the admin page, unless that is intended")
	}
}

// mostText is how many bytes of a limit as text the page takes.
const mostText = 128
