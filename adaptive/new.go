package adaptive

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/internal/wiring"
)

// New makes a limiter. It takes the options [WithLimits] (default: the limits of
// the strategy, at least 1), [WithQueue] (default: no waiting), [WithPriorities] and
// [WithFairShares], which need WithQueue unless the strategy decides about each request
// ([Default], [RunQueue]), and [WithClock]. The error names the field and the value that is out of range,
// in the limiter, the queue or the strategy. A strategy that is already in use is an
// error. A nil strategy panics.
func New(s Strategy, opts ...Option) (*Limiter, error) {
	if s == nil {
		panic("adaptive: New needs a strategy")
	}
	set, err := wiring.Read("New", opts, "WithLimits", "WithQueue", "WithPriorities", "WithFairShares", "WithClock")
	if err != nil {
		return nil, fmt.Errorf("adaptive: %w", err)
	}
	limits, err := set.Limits("New", wiring.Limits{Min: 1, Max: noLimit})
	if err != nil {
		return nil, fmt.Errorf("adaptive: %w", err)
	}
	queue, is := wiring.Get(set, "WithQueue", Queue{}), traitsOf(s)
	weight, shared := set["WithFairShares"].(func(string) float64)
	l := &Limiter{
		machine: set.Machine(), strategy: s, traits: is, min: int64(limits.Min),
		order: newOrder(wiring.Get(set, "WithPriorities", false), shared, weight),
	}
	l.max = min(int64(limits.Max), is.max)
	l.follower, _ = s.(Follower)
	err = errors.Join(wiring.Check(s), queue.check())
	switch {
	case err != nil:
	case l.min > l.max:
		err = fmt.Errorf("WithLimits: lowest limit is %d, above the largest of the strategy, %d", l.min, l.max)
	case l.order != nil && queue.discipline == unqueued && (l.gates == nil || l.binds):
		err = errors.New("WithPriorities and WithFairShares need WithQueue with this strategy: a slot in use cannot be lent")
	default:
		err = l.take()
	}
	if err != nil {
		return nil, fmt.Errorf("adaptive: New: %w", err)
	}
	if now, given := set["WithClock"].(func() time.Time); given {
		l.followClock(now)
	}
	_, isFixed := s.(*fixed)
	l.sampled = isFixed && l.order == nil
	l.plain = l.sampled && queue.discipline == unqueued
	if !l.perRequest || l.order == nil {
		l.tooLate = nil // no class inherits slots
	}
	if queue.discipline != unqueued {
		l.queue = &waitQueue{limiter: l, queue: queue, flows: newFlows()}
	}
	return l, nil
}
