// Package shares divides one rate limit between children, each with a guaranteed floor.
package shares

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/internal/engine"
	"github.com/sluice-go/sluice/internal/decide"
)

// Shares divides one token bucket for each key between children, such as the limit of an organization
// between its teams: a child with a floor always has that part of the rate, and others borrow what it
// leaves idle.
//
//	teams, err := shares.New(algo.PerMinute(100_000), map[string]int64{"search": 50_000, "batch": 20_000})
//	lease, err := teams.Child("search").Acquire(ctx, organization, 1200)
//
// Each floor fills a bucket of its child. The overflow of a full bucket, and the rest of the rate, fill a
// common bucket, from which any child may take the units that its own lacks.
//
// Bounds, for each key:
//
//   - All children together: at most Burst + rate*w units in any window of length w.
//   - A floor: a child whose requests fit a bucket of that rate, with the depth below, is never denied. A
//     child that has spent more regains its floor, at that rate, as soon as it stops.
//   - Loans: no part of the rate is lost while the common bucket is not full. A child saves at most a
//     second of its floor before the rest is lent.
//
// Half of the burst is for floors in proportion to the rate, but at least a unit for each child with a
// floor, and at most a second of it; the common bucket has the rest. Limit is the depth of the child's
// and the common bucket. RetryAfter is exact if nothing else is charged meanwhile.
//
// A cancellation, or a settlement to less, refunds the common part first, minus all that can have
// refilled since. Units that a settlement charges beyond the request are debt of the common bucket.
//
// State is three words and one for each child, under the lock of the key; a decision takes time in
// proportion to the children and allocates nothing. Source: the token sharing of MEF 10.3, section 12.
//
// Do not use it for shares of capacity in flight: see adaptive.WithFairShares.
type Shares struct {
	children map[string]*algo.RateLimiter
	other    *algo.RateLimiter
}

// New divides r between at most 63 children by name. floors are units in a period of
// r, 0 or more, and together at most the count of r. The options are [algo.Burst] (default: the
// rate's count), [algo.MaxKeys], [algo.DenyNew] and [algo.Clock]. The error names the field and the invalid value;
// the burst must have a unit for each child with a floor, and one more.
func New(r algo.Rate, floors map[string]int64, opts ...algo.Option) (*Shares, error) {
	s, err := algo.Spec{Algorithm: "leaky-bucket", Rate: r}.With(opts...)
	if err != nil {
		return nil, fmt.Errorf("shares: %s", strings.TrimPrefix(err.Error(), "algo: leaky bucket: "))
	}
	if !s.Given("burst") {
		s.Burst = r.Count
	}
	names := slices.Sorted(maps.Keys(floors))
	units := make([]int64, 0, len(names)+1)
	for _, name := range names {
		units = append(units, floors[name])
	}
	rate := decide.Rate{Count: r.Count, Period: r.Period, Resolution: decide.Nanoseconds}
	p, err := decide.NewShares(rate, s.Burst, append(units, 0))
	if err != nil {
		return nil, fmt.Errorf("shares: %w", err)
	}
	table := engine.Config{MaxKeys: int(s.MaxKeys), DenyNew: s.DenyNew, Now: s.Clock()}
	store := engine.NewValues(table, (*decide.SharesState).Inherit)
	child := func(i int) *algo.RateLimiter {
		d := &decide.Share{Shares: p, Child: i}
		l := engine.Limit[*decide.SharesState]{Decider: d, Window: d.FillTime(rate)}
		return engine.Limiter(engine.Of(store, table, l)).(*algo.RateLimiter)
	}
	all := &Shares{children: make(map[string]*algo.RateLimiter, len(names)), other: child(len(names))}
	for i, name := range names {
		all.children[name] = child(i)
	}
	return all, nil
}

// Child returns the limiter of a child. The key selects the limit that the children share; Reset
// and Stats affect all of them. The limit cannot be changed. A name without a floor gets only
// loans.
func (s *Shares) Child(name string) *algo.RateLimiter {
	if c, ok := s.children[name]; ok {
		return c
	}
	return s.other
}
