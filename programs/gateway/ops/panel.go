package ops

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

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
	keys  *rules.Rules                // limits of single keys in all instances; nil with a local store
	allow atomic.Pointer[authorize]   // by the token; nil: there is none
	file  atomic.Pointer[config.File] // in force
	trial atomic.Pointer[[]string]    // limits that deny nothing
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
	Overload string `json:"overload"`
}

// Status describes the file in force, as w knows it, and the overload protection, nil if it is off.
func (p *Panel) Status(w *reload.Watcher, overload *adaptive.Limiter) (s Status) {
	s.Config.Status, s.Config.Hash, s.Overload = w.Status(), p.file.Load().Hash, "off"
	if overload != nil {
		s.Overload = overload.Explain().String()
	}
	return s
}

// Limit is a limit in force as the page shows it.
type Limit struct {
	Limiter  algo.Limiter
	Text     string // as the file has it
	Trial    bool   // it denies nothing
	Identity config.Identity
}

// mostShown is how many limits the page has room for, beside the protection.
const mostShown = 60

// Show puts the limits in force on the page, by their names. With more than it
// has room for, it shows only the events of the others.
func (p *Panel) Show(limits map[string]Limit, overload *adaptive.Limiter) error {
	var opts []admin.Option
	var trial []string
	for i, name := range slices.Sorted(maps.Keys(limits)) {
		l := limits[name]
		if l.Trial {
			trial = append(trial, name)
		}
		if i >= mostShown {
			continue
		}
		shown := l.Limiter
		if l.Trial {
			shown = algo.Shadow(shown)
		}
		opts = append(opts, admin.WithPolicy(name, shown))
		if l.Text != "" && len(l.Text) <= mostText {
			opts = append(opts, admin.WithText(name, l.Text))
		}
		if l.Identity.Key != nil {
			opts = append(opts, admin.WithIdentity(name, l.Identity.Parts, l.Identity.Key))
		}
	}
	p.trial.Store(&trial)
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

// remind logs the limits that are on trial.
func (p *Panel) remind() {
	if names := p.trial.Load(); names != nil && len(*names) > 0 {
		p.log.Warn("limits on trial deny nothing", "code", "gateway.trial", "limits", *names, "do", "remove shadow: true to put them in force")
	}
}

// mostText is how many bytes of a limit as text the page takes.
const mostText = 128
