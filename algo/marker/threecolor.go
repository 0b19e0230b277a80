package marker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/internal/engine"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// ThreeColor is a [Marker] with two token buckets a key, made by
// [NewSRTCM], [NewTRTCM] or [NewRFC4115]. The buckets start full and are counted
// exactly, fractions of a unit included. A clock reading that is not after the
// last one fills nothing. A call allocates nothing.
type ThreeColor struct {
	colors *decide.ThreeColor
	table  engine.Config
	store  *keystore.Store[*decide.ColorState, decide.ColorState]
}

func newThreeColor(name string, colors *decide.ThreeColor, err error, opts []algo.Option) (*ThreeColor, error) {
	table, refused := tableOf(opts)
	if err = errors.Join(refused, err); err != nil {
		return nil, fmt.Errorf("marker: %s: %w", name, err)
	}
	return &ThreeColor{colors, table, engine.NewValues(table, (*decide.ColorState).Inherit)}, nil
}

// tableOf reads the options of the table of keys; they are those of a sliding log.
func tableOf(opts []algo.Option) (engine.Config, error) {
	s, err := algo.Spec{Algorithm: "sliding-log", Rate: algo.PerSecond(1)}.With(opts...)
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), "algo: sliding log: "))
	}
	return engine.Config{MaxKeys: int(s.MaxKeys), DenyNew: s.DenyNew, Now: s.Clock()}, err
}

// local returns r in nanoseconds.
func local(r algo.Rate) decide.Rate {
	return decide.Rate{Count: r.Count, Period: r.Period, Resolution: decide.Nanoseconds}
}

// Mark implements [Marker]. It ignores ctx, because it never waits.
func (m *ThreeColor) Mark(_ context.Context, key string, n int64, in Color) (Color, error) {
	if n < 0 {
		return Red, costError(n)
	}
	out := decide.Red
	_, r := m.store.Update(key, keystore.Now, func(s keystore.State[*decide.ColorState], now int64) (*decide.ColorState, int64, bool) {
		out = m.colors.Mark(s.State, now, n, decide.Color(min(in, Red)))
		return s.State, m.colors.Expiry(s.State, now), n > 0 && out != decide.Red
	})
	if r == keystore.Full {
		return Red, nil
	}
	return Color(out), nil
}

// Reset fills the buckets of key. Earlier admissions of key, and of a few other keys, can no longer
// be refunded.
func (m *ThreeColor) Reset(key string) { m.limiter(Green).Reset(key) }

// Stats describes the table of keys; Live counts those whose buckets are not full.
func (m *ThreeColor) Stats() algo.Stats { return m.limiter(Green).Stats() }

// limiter makes a limiter that admits requests that m marks pass or greener.
func (m *ThreeColor) limiter(pass Color) *algo.RateLimiter {
	c := &decide.ColorLimit{ThreeColor: m.colors, Pass: decide.Color(pass)}
	l := engine.Limit[*decide.ColorState]{Decider: c}
	if pass != Red {
		l.Window = keystore.ToDuration(c.FillTime())
	}
	return engine.Limiter(engine.Of(m.store, m.table, l)).(*algo.RateLimiter)
}
