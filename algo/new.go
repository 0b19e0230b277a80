package algo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/engine"
	"github.com/sluice-go/sluice/internal/keystore"
)

// kind is an algorithm: its names, the options that it takes, and its state.
type kind struct {
	name  string   // in a Spec
	title string   // in errors
	takes []string // options
	start func(l *RateLimiter, s Spec)
}

const defaultAlgorithm = "token-bucket"

// kinds lists every algorithm that a Spec can name. As a variable it would
// link all of them into every program.
func kinds() []*kind {
	return []*kind{
		&tokenBucket, &leakyBucket, &pacer, &nginx, &smoothBursty, &smoothWarmingUp,
		&fixedWindow, &slidingWindow, &slidingLog, &strict,
	}
}

func kindNamed(name string) (*kind, error) {
	if name == "" {
		name = defaultAlgorithm
	}
	all := kinds()
	known := make([]string, 0, len(all))
	for _, k := range all {
		if k.name == name {
			return k, nil
		}
		known = append(known, k.name)
	}
	return nil, fmt.Errorf("algo: spec: algorithm is %q, want %s", name, strings.Join(known, ", "))
}

// construct makes the limiter that s and opts describe.
func (k *kind) construct(s Spec, opts []Option) (*RateLimiter, error) {
	s, err := k.configure(s, opts)
	if err != nil {
		return nil, err
	}
	return k.make(s)
}

// configure writes opts to s and checks everything that does not depend on the
// algorithm.
func (k *kind) configure(s Spec, opts []Option) (Spec, error) {
	s.Algorithm = k.name
	for i, o := range opts {
		switch {
		case o.apply == nil:
			return s, fmt.Errorf("algo: %s: the zero Option is not an option", k.title)
		case slices.ContainsFunc(opts[:i], func(p Option) bool { return p.name == o.name }):
			return s, fmt.Errorf("algo: %s: duplicate option %s", k.title, o)
		}
		if err := k.check(o.name); err != nil {
			return s, err
		}
		s.write(o)
	}
	for i, f := range fields {
		if !s.given(i) {
			continue
		}
		if err := k.check(f.option); err != nil {
			return s, err
		}
	}
	if s.Given("keys") && (s.MaxKeys < 1 || s.MaxKeys > mostMaxKeys) {
		return s, fmt.Errorf("algo: %s: max keys is %d, want 1 to %d", k.title, s.MaxKeys, mostMaxKeys)
	}
	return s, nil
}

// check reports an option that the algorithm does not take.
func (k *kind) check(option string) error {
	if slices.Contains(k.takes, option) {
		return nil
	}
	return fmt.Errorf("algo: %s: does not take the option %s, only %s", k.title, option, strings.Join(k.takes, ", "))
}

// builder makes the limit that s describes, to replace old in use; nil at first. burstAt is
// the rate at which the burst was set.
type builder[S any] func(s Spec, burstAt Rate, old engine.Decider[S], clock *keystore.Clock) (engine.Limit[S], error)

// inWords starts a limiter with one word a key.
func inWords(build builder[int64]) func(*RateLimiter, Spec) {
	return func(l *RateLimiter, s Spec) {
		l.words.Init(engine.NewWords(s.table()), s.table())
		l.change = changes(&l.words, build)
	}
}

// inValues starts a limiter with a value a key, which inherit copies.
func inValues[V any](inherit func(heir, from *V), build builder[*V]) func(*RateLimiter, Spec) {
	return func(l *RateLimiter, s Spec) {
		k := new(engine.Keyed[*V, V])
		k.Init(engine.NewValues(s.table(), inherit), s.table())
		l.values, l.change = k, changes(k, build)
	}
}

// changes returns the change of the limit of k.
func changes[S comparable, V any](k *engine.Keyed[S, V], build builder[S]) func(Spec, Rate) error {
	return func(s Spec, burstAt Rate) error {
		return k.Change(func(old engine.Decider[S], clock *keystore.Clock) (engine.Limit[S], error) {
			return build(s, burstAt, old, clock)
		})
	}
}

// bucket starts a limiter with the GCRA that params makes of its Spec. An empty one has
// saved nothing at the first reading of the clock.
func bucket(params func(s Spec, burstAt Rate) (*decide.GCRA, error), empty bool) func(*RateLimiter, Spec) {
	return inWords(func(s Spec, burstAt Rate, old engine.Decider[int64], clock *keystore.Clock) (l engine.Limit[int64], err error) {
		g, err := params(s, burstAt)
		if err != nil {
			return l, err
		}
		if empty {
			l.Initial = g.Empty(keystore.TicksPerNano)
		}
		if old != nil {
			g = g.Succeed(old.(*decide.GCRA), clock.Now())
		}
		l.Decider, l.Window = g, g.FillTime()
		return l, nil
	})
}

const mostMaxKeys = 1<<31 - 1

// table bounds the table of keys.
func (s *Spec) table() engine.Config {
	return engine.Config{MaxKeys: int(s.MaxKeys), DenyNew: s.DenyNew}
}
