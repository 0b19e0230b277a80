package algo

import (
	"fmt"
	"sync"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// rated changes the limit of a keyed limiter in use. (It is beside it and not
// around it, because the documentation shows methods of embedded types only if
// they are embedded once.)
type rated[S comparable, V any] struct {
	limiter  *keyed[S, V]
	kind     *kind
	build    builder[S]
	changing sync.Mutex // serializes changes of the limit
	spec     Spec
	burstAt  Rate // the rate when the burst was set
}

// builder makes the limit that s describes, to replace old at now; nil at first.
// burstAt is the rate at which the burst was set.
type builder[S any] func(s Spec, burstAt Rate, old decider[S], now int64) (limit[S], error)

// init makes k and r ready. It is not a constructor because k must not move.
func (r *rated[S, V]) init(k *keyed[S, V], kind *kind, s Spec, store *keystore.Store[S, V], build builder[S]) error {
	k.use(store, s.DenyNew)
	r.limiter, r.kind, r.build = k, kind, build
	return r.change(func(Spec, Rate) (Spec, Rate, error) { return s, s.Rate, nil })
}

// change replaces the limit. It takes the same time for one key and for
// millions, because no state is touched.
func (r *rated[S, V]) change(to func(s Spec, burstAt Rate) (Spec, Rate, error)) error {
	if r.limiter == nil {
		return errLiteral
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	s, burstAt, err := to(r.spec, r.burstAt)
	if err != nil {
		return err
	}
	var old decider[S]
	if l := r.limiter.limit.Load(); l != nil {
		old = l.decider
	}
	l, err := r.build(s, burstAt, old, r.limiter.store.Clock.Now())
	if err != nil {
		return fmt.Errorf("algo: %s: %w", r.kind.title, err)
	}
	r.spec, r.burstAt = s, burstAt
	r.limiter.limit.Store(&l)
	return nil
}

// SetRate changes the rate while the limiter runs. In windows and logs keys
// keep their spent units. In buckets they keep the time until they are full, so
// their spent units grow and shrink with the rate: half of 10 an hour becomes
// half of 100 an hour. After the rate is raised no key waits longer than one that
// has just spent the whole burst; [SmoothBursty] and [SmoothWarmingUp] keep debt,
// as Guava does. A burst that was not set follows the count of the rate.
func (r *rated[S, V]) SetRate(to Rate) error {
	return r.change(func(s Spec, burstAt Rate) (Spec, Rate, error) {
		s.Rate = to
		return s, burstAt, nil
	})
}

// SetSpec changes the whole limit while the limiter runs; see [Spec.Apply].
func (r *rated[S, V]) SetSpec(s Spec) error {
	return r.change(func(was Spec, _ Rate) (Spec, Rate, error) {
		next, err := was.replace(r.kind, s)
		return next, s.Rate, err
	})
}

// initBucket makes b ready for the GCRA that params makes of its Spec.
func initBucket(b *keyed[int64, struct{}], r *rated[int64, struct{}], k *kind, s Spec, params func(s Spec, burstAt Rate) (*decide.GCRA, error)) error {
	return r.init(b, k, s, newWords(s), func(s Spec, burstAt Rate, old decider[int64], now int64) (l limit[int64], err error) {
		g, err := params(s, burstAt)
		if err != nil {
			return l, err
		}
		if old != nil {
			g = g.Succeed(old.(*decide.GCRA), now)
		}
		return limit[int64]{decider: g, window: g.FillTime()}, nil
	})
}

// setBurst changes the burst while the limiter runs.
func (r *rated[S, V]) setBurst(n int64) error {
	return r.change(func(s Spec, _ Rate) (Spec, Rate, error) {
		s.write(Burst(n))
		return s, s.Rate, nil
	})
}
