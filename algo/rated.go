package algo

import (
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// rated is a keyed limiter whose limit changes in use.
type rated[S comparable, V any] struct {
	keyed[S, V]
	kind     *kind
	build    builder[S]
	changing sync.Mutex // serializes changes of the limit
	spec     Spec
	burstAt  Rate // the rate when the burst was set
}

// builder makes the limit that s describes, to replace old at now; nil at first.
// burstAt is the rate at which the burst was set.
type builder[S any] func(s Spec, burstAt Rate, old decider[S], now int64) (limit[S], error)

// init makes k ready. It is not a constructor because k must not move.
func (k *rated[S, V]) init(kind *kind, s Spec, store *keystore.Store[S, V], build builder[S]) error {
	k.use(store, s.OnFull)
	k.kind, k.build = kind, build
	return k.change(func(Spec, Rate) (Spec, Rate, error) { return s, s.Rate, nil })
}

// change replaces the limit. It takes the same time for one key and for
// millions, because no state is touched.
func (k *rated[S, V]) change(to func(s Spec, burstAt Rate) (Spec, Rate, error)) error {
	k.changing.Lock()
	defer k.changing.Unlock()
	s, burstAt, err := to(k.spec, k.burstAt)
	if err != nil {
		return err
	}
	var old decider[S]
	if l := k.limit.Load(); l != nil {
		old = l.decider
	}
	l, err := k.build(s, burstAt, old, k.store.Clock.Now())
	if err != nil {
		return fmt.Errorf("algo: %s: %w", k.kind.title, err)
	}
	k.spec, k.burstAt = s, burstAt
	k.limit.Store(&l)
	return nil
}

// SetRate changes the rate while the limiter runs. What keys have spent stays
// spent. After the rate is raised no key waits longer than one that has just
// spent the whole burst; [SmoothBursty] and [SmoothWarmingUp] keep debt, as
// Guava does. A burst that was not set follows the count of the rate.
func (k *rated[S, V]) SetRate(r Rate) error {
	return k.change(func(s Spec, burstAt Rate) (Spec, Rate, error) {
		s.Rate = r
		return s, burstAt, nil
	})
}

// SetSpec changes the whole limit while the limiter runs; see [Spec.Apply].
func (k *rated[S, V]) SetSpec(s Spec) error {
	return k.change(func(was Spec, _ Rate) (Spec, Rate, error) {
		next, err := was.replace(k.kind, s)
		return next, s.Rate, err
	})
}

// bucket is a limiter over one word that [decide.GCRA] decides on.
type bucket = rated[int64, struct{}]

// initBucket makes b ready for the GCRA that params makes of its Spec.
func initBucket(b *bucket, k *kind, s Spec, params func(s Spec, burstAt Rate) (*decide.GCRA, error)) error {
	return b.init(k, s, newWords(s), func(s Spec, burstAt Rate, old decider[int64], now int64) (l limit[int64], err error) {
		g, err := params(s, burstAt)
		if err != nil {
			return l, err
		}
		if old != nil {
			g = g.Succeed(old.(*decide.GCRA), now)
		}
		return limit[int64]{decider: g, plain: true, window: g.FillTime()}, nil
	})
}

// setBurst changes the burst while the limiter runs.
func (k *rated[S, V]) setBurst(n int64) error {
	return k.change(func(s Spec, _ Rate) (Spec, Rate, error) {
		s.write(Burst(n))
		return s, s.Rate, nil
	})
}
