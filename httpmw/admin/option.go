package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"unicode/utf8"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/option"
)

// Option adjusts an [Admin]. An option that is given twice is an error, unless it names
// something else.
type Option struct {
	name  string // with its argument
	apply func(*config) error
}

func (o Option) split() (string, func(*config) error) { return o.name, o.apply }

const (
	longestName = 128 // bytes
	mostPanels  = 16  // adaptive limiters, and stores
)

// WithPolicy shows a limit under the name in its events, such as the one of httpmw.WithName; at
// most 60 of them. l is the limiter that the middleware calls. A [Control] may be beneath it, as
// in algo.Shadow. The possible actions depend on its methods: Reset(key), or Reset(ctx, key)
// error; Ban(ctx, key, duration) error, which Reset lifts; Adjust, SwitchOff and so on as the limiters
// of package rules have them; or it is an algo.Switch. [Control] adds those that a limiter lacks, and lets operators act on
// a key by the hash that the page shows.
func WithPolicy(name string, l algo.Limiter) Option {
	return Option{"WithPolicy " + name, func(c *config) error {
		switch {
		case l == nil:
			return fmt.Errorf("policy %q: the limiter is nil", name)
		case len(c.policies) >= mostPolicies-4:
			return fmt.Errorf("policy %q: there are %d already", name, len(c.policies))
		case c.policy(name) != nil:
			return fmt.Errorf("policy %q: the name is taken", name)
		}
		p := policy{name: name, limiter: l, can: abilitiesOf(l), blocks: new(blocklist)}
		if c := controlled(l); c != nil {
			p.blocks, p.callers = &c.blocked, &c.callers
		}
		c.policies = append(c.policies, p)
		return validName("policy", name)
	}}
}

// WithText shows the limit of a policy, which WithPolicy must have registered
// before, as the configuration writes it: "100/min burst 20". By default the page
// describes it.
func WithText(policy, text string) Option {
	return Option{"WithText " + policy, func(c *config) error {
		p := c.policy(policy)
		if p == nil {
			return fmt.Errorf("text of policy %q: there is no such policy", policy)
		}
		p.text = text
		return validName("text of a policy", text)
	}}
}

// identity translates the operators' name for a caller into a key of the
// limiter.
type identity struct {
	parts []string
	key   func(parts []string) (string, error)
}

// WithIdentity lets operators name the callers of a policy, which WithPolicy must have
// registered before, as their system does: by an address, a user name, or an API key.
// parts are the labels of the names, in order: "ip", "header X-User". key translates
// as many values into the key that the limiter gets; calling the key function of the
// policy with a request that has these values is the surest way. The text of its error
// is shown to the operator. Without it operators have to type the key itself.
func WithIdentity(policy string, parts []string, key func(parts []string) (string, error)) Option {
	return Option{"WithIdentity " + policy, func(c *config) error {
		p := c.policy(policy)
		switch {
		case p == nil:
			return fmt.Errorf("identity of policy %q: there is no such policy", policy)
		case key == nil:
			return fmt.Errorf("identity of policy %q: the function is nil", policy)
		}
		p.identity = identity{append([]string{}, parts...), key}
		return nil
	}}
}

// WithClearKeys shows the keys beside their hashes, where the page knows them:
// those that were limited and came again, the blocked ones, and the heaviest tenants of
// an adaptive limiter with fair shares. Keys may be
// addresses and names of users; by default only their hashes are shown.
func WithClearKeys() Option {
	return Option{"WithClearKeys", option.Sets(func(c *config) { c.clear = true })}
}

// WithActor names the sender of an action, for the log and the list of blocks. The
// default is the address of the peer.
func WithActor(name func(*http.Request) string) Option {
	return Option{"WithActor", func(c *config) error {
		if name == nil {
			return errors.New("actor: the function is nil")
		}
		c.actor = name
		return nil
	}}
}

// WithAdaptive shows the state of an adaptive limiter; at most 16 of them.
func WithAdaptive(name string, l *adaptive.Limiter) Option {
	return Option{"WithAdaptive " + name, func(c *config) error {
		switch {
		case l == nil:
			return fmt.Errorf("adaptive %q: the limiter is nil", name)
		case len(c.adaptive) >= mostPanels:
			return fmt.Errorf("adaptive %q: there are %d already", name, len(c.adaptive))
		}
		for _, other := range c.adaptive {
			if other.name == name {
				return fmt.Errorf("adaptive %q: the name is taken", name)
			}
		}
		c.adaptive = append(c.adaptive, adaptiveLimiter{name, l, new(gauge)})
		return validName("adaptive", name)
	}}
}

// WithStore shows the state of a store on Redis, and the source of decisions:
// Redis, the deny cache, prepaid blocks or the fallback; at most 16 of them.
// The decisions are of the named policies, or of all if none is named.
func WithStore(name string, s *distributed.Store, policies ...string) Option {
	return Option{"WithStore " + name, func(c *config) error {
		switch {
		case s == nil:
			return fmt.Errorf("store %q: the store is nil", name)
		case len(c.stores) >= mostPanels:
			return fmt.Errorf("store %q: there are %d already", name, len(c.stores))
		}
		for _, other := range c.stores {
			if other.name == name {
				return fmt.Errorf("store %q: the name is taken", name)
			}
		}
		c.stores = append(c.stores, store{name, s, append([]string{}, policies...), new(gauge), new(outage)})
		return validName("store", name)
	}}
}

// WithAuthorize sets the access control of actions: nil from allow permits the
// request. By default all actions are denied. The error is logged, not sent.
// allow runs on each action and before anything else of the request is read;
// it must not read the body. [Bearer] returns one that requires a token.
func WithAuthorize(allow func(*http.Request) error) Option {
	return Option{"WithAuthorize", func(c *config) error {
		c.act = allow
		return notNil("authorize", allow)
	}}
}

// WithAuthorizeRead sets the access control of the data on the page; the files
// of the page itself are public, so that it can ask for a token. By default
// only clients on this machine have access: the peer has a loopback address,
// the Host is one or localhost (so that no web site can point a name of its own
// here), and the request carries no trace of a proxy. If a proxy on this
// machine leaves no trace, set your own access control.
func WithAuthorizeRead(allow func(*http.Request) error) Option {
	return Option{"WithAuthorizeRead", func(c *config) error {
		c.read = allow
		return notNil("authorize read", allow)
	}}
}

// WithTitle sets the heading of the page, up to 128 bytes, to tell services and
// instances apart. The default is "sluice".
func WithTitle(title string) Option {
	return Option{"WithTitle", func(c *config) error {
		c.title = title
		return validName("title", title)
	}}
}

// WithLogger sets where actions are logged, with the hash of the key. The
// default is slog.Default.
func WithLogger(l *slog.Logger) Option {
	return Option{"WithLogger", func(c *config) error {
		c.logger = l
		if l == nil {
			return errors.New("logger is nil")
		}
		return nil
	}}
}

func notNil(what string, f func(*http.Request) error) error {
	if f == nil {
		return fmt.Errorf("%s: the function is nil", what)
	}
	return nil
}

func validName(what, name string) error {
	if name == "" || len(name) > longestName || !utf8.ValidString(name) {
		return fmt.Errorf("%s: the name is %q, want 1 to %d bytes of UTF-8", what, name, longestName)
	}
	return nil
}
