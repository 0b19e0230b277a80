package reload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
)

// Config configures a set of limits. The zero value keeps limits in this process, reads JSON and
// logs to slog.Default.
type Config struct {
	// New makes the limiter of a new limit; [algo.Spec.New] by default. The algorithm of spec is
	// filled in. On Redis make it part of the name:
	//
	//	func(name string, spec algo.Spec) (algo.Limiter, error) {
	//		return store.Limiter(name+"."+spec.Algorithm, spec)
	//	}
	//
	// Of the limiters in the result (see [algo.Walk]) one has SetSpec. Limiters with Close stay open,
	// in case a later configuration names them again.
	New func(name string, spec algo.Spec) (algo.Limiter, error)
	// Decode reads the limits of a file; JSON by default.
	Decode func(data []byte) (map[string]algo.Spec, error)
	// Logger gets a line for each change and each failure of a file.
	Logger *slog.Logger
}

// Limits holds limits by name. It is safe for concurrent use.
type Limits struct {
	config Config

	mu    sync.Mutex
	idle  map[string]*entry // limiters with Close that no configuration names any more
	taken map[string]bool   // by Limiter
	now   atomic.Pointer[map[string]*entry]
}

type entry struct {
	given   algo.Spec // as it was configured
	spec    algo.Spec // with its algorithm
	limiter algo.Limiter
}

// Changes reports the effect of a configuration's change.
type Changes struct {
	Kept, Adjusted, Added, Removed int
	// Replaced names the limits that could not be adjusted, whose limiters are new.
	Replaced []string
	// Changed has each limit that was adjusted or replaced, before and after: "login: 5/s -> 5/min".
	Changed []string
}

// New returns a set without limits; see [Limits.Apply].
func New(c Config) *Limits {
	if c.New == nil {
		c.New = func(_ string, spec algo.Spec) (algo.Limiter, error) { return spec.New() }
	}
	if c.Decode == nil {
		c.Decode = decoder()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	l := &Limits{config: c, idle: map[string]*entry{}, taken: map[string]bool{}}
	l.now.Store(&map[string]*entry{})
	return l
}

// Limiter returns the limiter of name. It follows changes of the configuration, which must contain
// name from now on. The error names a limit that does not exist.
func (l *Limits) Limiter(name string) (algo.Limiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if (*l.now.Load())[name] == nil {
		return nil, fmt.Errorf("reload: there is no limit %q, only %q", name, slices.Sorted(maps.Keys(*l.now.Load())))
	}
	l.taken[name] = true
	return &following{l, name}, nil
}

// following forwards to the limiter in force under a name.
type following struct {
	limits *Limits
	name   string
}

func (f *following) limiter() algo.Limiter { return (*f.limits.now.Load())[f.name].limiter }

// Choose returns the limiter in force; see [algo.Chooser].
func (f *following) Choose(context.Context, string) (algo.Limiter, error) { return f.limiter(), nil }

// Acquire decides by the limiter in force.
func (f *following) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	return f.limiter().Acquire(ctx, key, n)
}

// Unwrap returns the limiter in force; see [algo.Wrapper].
func (f *following) Unwrap() []algo.Limiter { return []algo.Limiter{f.limiter()} }

// About describes the limit in force.
func (f *following) About() algo.Description { return algo.About(f.limiter()) }

// step is the change of one limit.
type step struct {
	name  string
	entry *entry
	*change
}

// change is nil for a limit that stays as it is.
type change struct {
	given, spec algo.Spec
	was         algo.Spec // of a limiter that is adjusted
	made        bool
}

func (c *change) adjusts() bool { return c != nil && !c.made && c.was != c.spec }

// Apply puts specs in force: all of them, or after an error none. use, which may be nil, gets the
// limiters by name before any change; Apply returns its error. A limit that stays keeps its
// limiter. A limiter that is no longer named still decides for its holders.
func (l *Limits) Apply(specs map[string]algo.Spec, use func(map[string]algo.Limiter) error) (Changes, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var done Changes
	steps, err := l.plan(specs, &done)
	if err == nil && use != nil {
		limiters := make(map[string]algo.Limiter, len(steps))
		for _, s := range steps {
			limiters[s.name] = s.entry.limiter
		}
		err = use(limiters)
	}
	for i := 0; i < len(steps) && err == nil; i++ {
		if s := &steps[i]; s.adjusts() {
			if err = s.spec.Apply(s.entry.limiter); err != nil {
				undo(steps[:i])
				err = fmt.Errorf("reload: limit %q: %w", s.name, err)
			}
		}
	}
	if err != nil {
		discard(steps)
		return Changes{}, err
	}
	l.install(steps, &done)
	return done, nil
}

// discard closes new limiters.
func discard(steps []step) {
	for _, s := range steps {
		if s.change == nil || !s.made {
			continue
		}
		if c := closer(s.entry.limiter); c != nil {
			_ = c.Close()
		}
	}
}

// undo restores the previous limits.
func undo(steps []step) {
	for _, s := range steps {
		if s.adjusts() {
			_ = s.was.Apply(s.entry.limiter) // it was in force
		}
	}
}

// plan finds or makes a limiter for each limit. The error has all mistakes.
func (l *Limits) plan(specs map[string]algo.Spec, done *Changes) (steps []step, err error) {
	steps = make([]step, 0, len(specs))
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		s, wrong := l.planOne(name, specs[name], done)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("reload: limit %q: %w", name, wrong))
			continue
		}
		steps = append(steps, s)
	}
	for _, name := range slices.Sorted(maps.Keys(l.taken)) {
		if _, there := specs[name]; !there {
			err = errors.Join(err, fmt.Errorf("reload: limit %q is in use and missing", name))
		}
	}
	return steps, err
}

// planOne reuses the limiter of a name or makes a new one.
func (l *Limits) planOne(name string, given algo.Spec, done *Changes) (step, error) {
	was := (*l.now.Load())[name]
	if was != nil && was.given == given { // checking all limits again takes a hundred times as long
		done.Kept++
		return step{name, was, nil}, nil
	}
	spec, err := given.With()
	if err != nil {
		return step{}, err
	}
	if was != nil && was.spec != spec {
		done.Changed = append(done.Changed, fmt.Sprintf("%s: %s -> %s", name, was.given, given))
	}
	if was != nil && adjustable(was.spec, spec) {
		if was.spec == spec {
			done.Kept++
		} else {
			done.Adjusted++
		}
		return step{name, was, &change{given, spec, was.spec, false}}, nil
	}
	if was == nil {
		done.Added++
	} else {
		done.Replaced = append(done.Replaced, name)
	}
	if back := l.idle[idleKey(name, spec)]; back != nil && adjustable(back.spec, spec) {
		return step{name, back, &change{given, spec, back.spec, false}}, nil
	}
	made, err := l.config.New(name, spec)
	return step{name, &entry{given, spec, made}, &change{given, spec, spec, true}}, err
}

// adjustable reports whether a limiter can change from was to next while in use.
func adjustable(was, next algo.Spec) bool {
	if was == next {
		return true
	}
	trial, err := was.New()
	return err == nil && trial.SetSpec(next) == nil
}

// install puts the steps in force.
func (l *Limits) install(steps []step, done *Changes) {
	next := make(map[string]*entry, len(steps))
	for _, s := range steps {
		if s.change != nil {
			s.entry.given, s.entry.spec = s.given, s.spec
		}
		next[s.name] = s.entry
		if len(l.idle) > 0 {
			delete(l.idle, idleKey(s.name, s.entry.spec))
		}
	}
	for name, e := range *l.now.Load() {
		if next[name] == nil {
			done.Removed++
		}
		if next[name] != e && closer(e.limiter) != nil {
			l.idle[idleKey(name, e.spec)] = e
		}
	}
	l.now.Store(&next)
}

// closer returns the limiter in l that has Close, nil without one.
func closer(l algo.Limiter) io.Closer {
	for one := range algo.Walk(l) {
		if c, ok := one.(io.Closer); ok {
			return c
		}
	}
	return nil
}

func idleKey(name string, spec algo.Spec) string { return spec.Algorithm + " " + name }
