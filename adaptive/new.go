package adaptive

import (
	"errors"
	"fmt"
	"slices"
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
	queue, all := wiring.Get(set, "WithQueue", Queue{}), leaves(s)
	weight, shared := set["WithFairShares"].(func(string) float64)
	l := &Limiter{
		machine: set.Machine(), strategy: s, min: int64(limits.Min), max: int64(min(limits.Max, maxLimit(s))),
		order: newOrder(wiring.Get(set, "WithPriorities", false), shared, weight),
	}
	for _, leaf := range all {
		if g, ok := leaf.(Gate); ok {
			l.gates = append(l.gates, g)
		}
		if b, ok := leaf.(blamable); ok {
			l.blamable = append(l.blamable, b)
		}
		if f, ok := leaf.(failing); ok {
			l.failing = append(l.failing, f)
		}
		_, isFixed := leaf.(*fixed)
		l.countsWaiting = l.countsWaiting || isFixed
	}
	err = errors.Join(wiring.Check(s), queue.check())
	switch {
	case err != nil:
	case l.min > l.max:
		err = fmt.Errorf("WithLimits: lowest limit is %d, above the largest of the strategy, %d", l.min, l.max)
	case l.order != nil && queue.discipline == unqueued && (l.gates == nil || slices.ContainsFunc(all, binds)):
		err = errors.New("WithPriorities and WithFairShares need WithQueue with this strategy: a slot in use cannot be lent")
	default:
		err = take(s)
	}
	if err != nil {
		return nil, fmt.Errorf("adaptive: New: %w", err)
	}
	if now, given := set["WithClock"].(func() time.Time); given {
		l.followClock(now, all)
	}
	l.follower, _ = s.(Follower)
	_, isFixed := s.(*fixed)
	l.sampled = isFixed && l.order == nil
	l.plain = l.sampled && queue.discipline == unqueued
	l.perRequest = !slices.ContainsFunc(all, countsUnits)
	l.letInherit(all)
	l.connections.queues = runQueues(s)
	if queue.discipline != unqueued {
		l.queue = &waitQueue{limiter: l, queue: queue, flows: newFlows()}
	}
	return l, nil
}

// binds reports whether the limit of s is in force without overload too.
func binds(s Strategy) bool {
	_, gate := s.(Gate)
	return !gate && countsUnits(s)
}
