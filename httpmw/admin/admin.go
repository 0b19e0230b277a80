package admin

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/option"
)

// Admin is the handler of the page, and the observer of the events that it
// shows. It is safe for concurrent use and needs no Close.
type Admin struct {
	start   time.Time // seconds are counted from here
	cross   *http.CrossOriginProtection
	setting sync.Mutex // serialises Update
	config  atomic.Pointer[config]

	book     book   // counts of each policy
	requests series // counts of requests, if the service counts them
	top      top    // keys that are limited most
	trials   top    // keys that limits on trial would have limited most
	recent   recent // last decisions
	marks    marks  // the operators' actions
	gauged   atomic.Uint32
}

// config is the result of the options. It is immutable once it is in force.
type config struct {
	title     string
	logger    *slog.Logger
	read, act func(*http.Request) error
	actor     func(*http.Request) string
	clear     bool // keys are shown
	policies  []policy
	adaptive  []adaptiveLimiter
	stores    []store
}

// policy is a limit that is shown, and the possible actions on it.
type policy struct {
	name     string
	limiter  algo.Limiter
	can      abilities
	text     string // of the configuration
	identity identity
	blocks   *blocklist
	callers  *callers // nil: not known
}

type adaptiveLimiter struct {
	name    string
	limiter *adaptive.Limiter
	gauge   *gauge
}

type store struct {
	name     string
	store    *distributed.Store
	policies []string
	gauge    *gauge
	outage   *outage
}

// New makes the page of a service. Without an option it shows all events that
// [Admin.Observe] gets, to clients on this machine. The error names the option
// and the invalid value.
func New(opts ...Option) (*Admin, error) {
	a := &Admin{start: time.Now(), cross: http.NewCrossOriginProtection()}
	a.book.init()
	a.recent.init()
	c := config{title: "sluice", logger: slog.Default(), read: fromThisMachine, actor: peer}
	if err := a.apply(&c, opts); err != nil {
		return nil, err
	}
	return a, nil
}

// Update replaces the policies, adaptive limiters and stores by those in opts,
// for services that read their limits anew while they run. Other options hold
// until they are given again, and the counts of a name stay. With
// an error nothing changes.
func (a *Admin) Update(opts ...Option) error {
	a.setting.Lock()
	defer a.setting.Unlock()
	was := a.config.Load()
	c := *was
	c.policies, c.adaptive, c.stores = nil, nil, nil
	if err := a.apply(&c, opts); err != nil {
		return err
	}
	a.Mark(strings.Join(append([]string{"limits loaded"}, c.changed(was)...), "; "))
	return nil
}

// changed has the policies with another text than before: "login: 5/s -> 5/min".
func (c *config) changed(was *config) (all []string) {
	for _, p := range c.policies {
		if before := was.policy(p.name); before != nil && before.text != p.text {
			all = append(all, fmt.Sprintf("%s: %s -> %s", p.name, before.text, p.text))
		}
	}
	return all
}

func (a *Admin) apply(c *config, opts []Option) error {
	if err := option.Apply(c, opts, Option.split, nil); err != nil {
		return fmt.Errorf("admin: %w", err)
	}
	if was := a.config.Load(); was != nil {
		c.keepGauges(was)
	}
	a.config.Store(c)
	a.connect(c)
	return nil
}

// connect connects the events of each registered policy to the page's records
// of its keys.
func (a *Admin) connect(c *config) {
	now := a.second(time.Now())
	for i := range c.policies {
		a.book.find(c.policies[i].name, now)
	}
	for _, s := range a.book.all(now) {
		s.policy.Store(c.policy(s.name))
	}
}

// keepGauges keeps the history of limits that stay registered.
func (c *config) keepGauges(was *config) {
	for i := range c.policies {
		now := &c.policies[i]
		if before := was.policy(now.name); before != nil && before.limiter == now.limiter {
			now.blocks, now.can.onOff = before.blocks, before.can.onOff
		}
	}
	for i := range c.adaptive {
		now := &c.adaptive[i]
		if j := slices.IndexFunc(was.adaptive, func(l adaptiveLimiter) bool { return l.name == now.name }); j >= 0 {
			now.gauge = was.adaptive[j].gauge
		}
	}
	for i := range c.stores {
		now := &c.stores[i]
		if j := slices.IndexFunc(was.stores, func(s store) bool { return s.name == now.name }); j >= 0 {
			now.gauge, now.outage = was.stores[j].gauge, was.stores[j].outage
		}
	}
}

// second numbers the second of t, from 1. It goes by the monotonic clock.
func (a *Admin) second(t time.Time) uint32 {
	return uint32(max(t.Sub(a.start), 0)/time.Second) + 1
}

// policy finds a registered policy.
func (c *config) policy(name string) *policy {
	for i := range c.policies {
		if c.policies[i].name == name {
			return &c.policies[i]
		}
	}
	return nil
}
