package distributed

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// bucketStand stands in for a bucket.
type bucketStand struct {
	*algo.TokenBucket
	wait time.Duration
}

func (g *gcra) local(a allowance, keyed []algo.Option) (stand, error) {
	b, err := algo.NewTokenBucket(a.rate, slices.Concat(keyed, []algo.Option{algo.Burst(a.burst), algo.MaxWait(a.wait)})...)
	return bucketStand{b, a.wait}, err
}

// fit changes burst and rate in the order that is accepted: a burst that takes
// too long to fill at the rate of the moment is refused.
func (b bucketStand) fit(a allowance) bool {
	if b.wait != a.wait {
		return false
	}
	return b.SetBurst(a.burst) == nil && b.SetRate(a.rate) == nil ||
		b.SetRate(a.rate) == nil && b.SetBurst(a.burst) == nil
}

func (b bucketStand) warm(key string, d *algo.Decision) { warm(b, key, d) }

// windowStand stands in for a window.
type windowStand struct{ window }

type window interface {
	algo.Limiter
	SetRate(algo.Rate) error
}

func (w windowStand) fit(a allowance) bool { return w.SetRate(a.rate) == nil }

func (w windowStand) warm(key string, d *algo.Decision) { warm(w, key, d) }

// warm spends what l has more of, in proportion, than d says is left. Then
// going over to l hands out nothing that was spent before.
func warm(l algo.Limiter, key string, d *algo.Decision) {
	ctx := context.Background()
	local, err := l.Acquire(ctx, key, 0)
	if err != nil {
		return
	}
	want := int64(float64(local.Limit) * (float64(d.Remaining) / float64(d.Limit)))
	if surplus := local.Remaining - want; surplus > 0 {
		_, _ = l.Acquire(ctx, key, surplus) // a denial means that it is as empty already
	}
}
