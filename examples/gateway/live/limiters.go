package live

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/examples/gateway/config"
)

// Limiters are the limiters in force, by their identities. They are safe for
// concurrent use.
type Limiters struct {
	store *distributed.Store // nil: in this process
	wrap  func(algo.Limiter) algo.Limiter
	mu    sync.Mutex
	now   map[string]*entry
	// idle are limiters on Redis that no configuration names any more. Requests in
	// progress may still use them, so they are not closed, and are taken again when
	// a configuration names them again.
	idle map[string]*entry
}

type entry struct {
	spec    algo.Spec
	limiter algo.Limiter
	shown   algo.Limiter // as the configuration sees it
	pinned  bool         // a burst was given at some time, and no longer follows the rate
}

// Wanted is a limit that a configuration asks for. Limits with the same ID are
// the same limit, before and after a change.
type Wanted struct {
	ID   string
	Spec algo.Spec
}

// Changes lists the limits that a change of configuration affected.
type Changes struct {
	Kept, Adjusted, Added, Removed int
	// Replaced are those that could not be adjusted and begin anew: another
	// algorithm, or an option other than rate and burst. On Redis only another
	// algorithm forgets debts.
	Replaced []string
}

// NewLimiters keeps limits on store, or in this process if it is nil. wrap, if it
// is not nil, puts something around each limiter that is made, such as an
// operator's switch, which then stays as long as the limiter does.
func NewLimiters(store *distributed.Store, wrap func(algo.Limiter) algo.Limiter) *Limiters {
	if wrap == nil {
		wrap = func(l algo.Limiter) algo.Limiter { return l }
	}
	return &Limiters{store: store, wrap: wrap, now: map[string]*entry{}, idle: map[string]*entry{}}
}

// plan is the change that Apply makes to one limit.
type plan struct {
	id    string
	spec  algo.Spec
	entry *entry    // as it will be
	was   algo.Spec // of a limiter that is adjusted
	kept  bool      // the limiter is one that is in force
}

// Apply makes the limits that are wanted those in force. Before anything changes it gives
// use their limiters by ID; an error of use, and of Apply, changes nothing. A limit that
// stays is the same limiter with another rate and burst. Limiters that are not wanted any
// more still decide for their holders.
func (l *Limiters) Apply(wanted []Wanted, use func(map[string]algo.Limiter) error) (Changes, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var done Changes
	plans := make([]plan, 0, len(wanted))
	limiters := make(map[string]algo.Limiter, len(wanted))
	for _, w := range wanted {
		p, err := l.plan(w, &done)
		if err != nil {
			return Changes{}, fmt.Errorf("limit %q: %w", w.ID, err)
		}
		plans = append(plans, p)
		limiters[p.id] = p.entry.shown
	}
	if err := use(limiters); err != nil {
		return Changes{}, err
	}
	for i, p := range plans {
		if err := p.carryOut(); err != nil {
			for _, back := range plans[:i+1] {
				back.undo()
			}
			return Changes{}, fmt.Errorf("limit %q: %w", p.id, err)
		}
	}
	l.install(plans, &done)
	return done, nil
}

// plan decides between the limiter that is there and a new one.
func (l *Limiters) plan(w Wanted, done *Changes) (plan, error) {
	p := plan{id: w.ID, spec: w.Spec}
	was, there := l.now[w.ID]
	if there && adjustable(was, w.Spec) {
		p.entry, p.was, p.kept = was, was.spec, true
		if was.spec == w.Spec {
			done.Kept++
		} else {
			done.Adjusted++
		}
		return p, nil
	}
	if there {
		done.Replaced = append(done.Replaced, w.ID)
	} else {
		done.Added++
	}
	if back := l.idle[idleKey(w.ID, w.Spec)]; back != nil {
		p.entry, p.was, p.kept = back, back.spec, true
		return p, nil
	}
	made, err := l.make(w)
	if err != nil {
		return p, err
	}
	p.entry = &entry{spec: w.Spec, limiter: made, shown: l.wrap(made), pinned: w.Spec.Given("burst")}
	return p, nil
}

func (l *Limiters) make(w Wanted) (algo.Limiter, error) {
	if l.store == nil {
		return w.Spec.New()
	}
	return config.NewLimiter(l.store, storeName(w.ID), w.Spec)
}

// storeName is an ID short enough for a name in Redis.
func storeName(id string) string {
	const most = 120
	if len(id) <= most {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return id[:most-33] + "#" + hex.EncodeToString(sum[:16])
}

func (p *plan) carryOut() error {
	if !p.kept || p.was == p.spec {
		return nil
	}
	if err := p.entry.adjust(p.spec); err != nil {
		return err
	}
	p.entry.spec = p.spec
	return nil
}

// undo brings an adjusted limiter back. The old limit was in force, so it is
// one that the limiter can keep.
func (p *plan) undo() {
	if p.kept && p.was != p.spec {
		_ = p.entry.adjust(p.was)
		p.entry.spec = p.was
	}
}

func (l *Limiters) install(plans []plan, done *Changes) {
	next := make(map[string]*entry, len(plans))
	for _, p := range plans {
		next[p.id] = p.entry
		delete(l.idle, idleKey(p.id, p.spec))
	}
	for id, e := range l.now {
		if next[id] == nil {
			done.Removed++
		}
		if next[id] != e && l.store != nil {
			l.idle[idleKey(id, e.spec)] = e
		}
	}
	l.now = next
}

// idleKey is the part that a limiter on Redis must have in common with a limit to be
// adjusted to it.
func idleKey(id string, spec algo.Spec) string { return id + "\x00" + rest(spec) }
