package algo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/algo/internal/engine"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
	"github.com/sluice-go/sluice/internal/option"
)

// kind is an algorithm: its names, options and state.
type kind struct {
	name  string   // in a Spec
	title string   // in errors
	takes []string // options
	state
}

// configure writes opts to s and checks everything that is independent of the algorithm.
func (k *kind) configure(s Spec, opts []Option) (Spec, error) {
	s.Algorithm = k.name
	if err := option.Apply(&s, opts, Option.split, append(slices.Clip(k.takes), clockOption)); err != nil {
		return s, fmt.Errorf("algo: %s: %w", k.title, err)
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

// check rejects an option that the algorithm does not take.
func (k *kind) check(option string) error {
	if option == clockOption || slices.Contains(k.takes, option) {
		return nil
	}
	return fmt.Errorf("algo: %s: does not take the option %s, only %s", k.title, option, strings.Join(k.takes, ", "))
}

// state keeps an algorithm's keys. A kind needs no code at start, so a program links only the
// algorithms that it names.
type state interface {
	start(w *words, s Spec) engine.Engine // the table of keys: w, or another one
	change(e engine.Engine, s Spec, burstAt Rate) error
}

// builder makes the limit that s describes, to replace old (nil at first); burstAt is the rate at
// which the burst was set.
type builder[S any] func(s Spec, burstAt Rate, old engine.Decider[S], clock *keystore.Clock) (engine.Limit[S], error)

// words keeps one word a key.
type words = engine.Keyed[int64, struct{}]

// inWords builds algorithms whose state is one word a key.
type inWords builder[int64]

func (inWords) start(w *words, s Spec) engine.Engine {
	w.Init(engine.NewWords(s.table()), s.table())
	return w
}

func (b inWords) change(e engine.Engine, s Spec, burstAt Rate) error {
	return change[int64, struct{}](e, s, burstAt, builder[int64](b))
}

// inValues builds algorithms whose state is a value a key, which inherit copies.
type inValues[V any] struct {
	inherit func(heir, from *V)
	build   builder[*V]
}

func (v inValues[V]) start(_ *words, s Spec) engine.Engine {
	k := new(engine.Keyed[*V, V])
	k.Init(engine.NewValues(s.table(), v.inherit), s.table())
	return k
}

func (v inValues[V]) change(e engine.Engine, s Spec, burstAt Rate) error {
	return change[*V, V](e, s, burstAt, v.build)
}

// change rebuilds the Decider of an engine in use.
func change[S comparable, V any](e engine.Engine, s Spec, burstAt Rate, build builder[S]) error {
	return e.(*engine.Keyed[S, V]).Change(func(old engine.Decider[S], clock *keystore.Clock) (engine.Limit[S], error) {
		return build(s, burstAt, old, clock)
	})
}

// bucket builds the GCRA that params makes of a Spec. An empty one has saved nothing when the clock
// starts.
type bucket struct {
	params func(s Spec, burstAt Rate) (*decide.GCRA, error)
	empty  bool
}

func (b bucket) start(w *words, s Spec) engine.Engine { return inWords(b.build).start(w, s) }

func (b bucket) change(e engine.Engine, s Spec, burstAt Rate) error {
	return inWords(b.build).change(e, s, burstAt)
}

func (b bucket) build(s Spec, burstAt Rate, old engine.Decider[int64], clock *keystore.Clock) (l engine.Limit[int64], err error) {
	g, err := b.params(s, burstAt)
	if err != nil {
		return l, err
	}
	if b.empty {
		l.Initial = g.Empty(keystore.TicksPerNano)
	}
	if old != nil {
		g = g.Succeed(old.(*decide.GCRA), clock.Now())
	}
	l.Decider, l.Window = g, g.FillTime()
	return l, nil
}

const mostMaxKeys = 1<<31 - 1

// table returns the configuration of the table of keys.
func (s *Spec) table() engine.Config {
	return engine.Config{MaxKeys: int(s.MaxKeys), DenyNew: s.DenyNew, Now: s.Clock()}
}

// replace returns next, checked as the successor of s in a limiter of kind k.
func (s *Spec) replace(k *kind, next Spec) (Spec, error) {
	if next.Algorithm == "" {
		next.Algorithm = defaultAlgorithm
	}
	if next.Algorithm != k.name {
		return next, fmt.Errorf("algo: %s: algorithm is %q and cannot be changed in use: make a new limiter", k.title, next.Algorithm)
	}
	next, err := k.configure(next, nil)
	if err != nil {
		return next, err
	}
	for i, f := range fields {
		if was, is := s.value(i), next.value(i); f.is(permanent) && was != is {
			return next, fmt.Errorf("algo: %s: %s is %s and cannot be changed from %s in use: make a new limiter", k.title, f.word, is, was)
		}
	}
	next.clock = s.clock
	return next, nil
}
