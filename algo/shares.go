package algo

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-go/sluice/internal/decide"
)

// Shares divides one token bucket for each key between children, such as the limit of an
// organization between its teams: a child with a floor always has that part of the rate,
// and the rate that children leave idle is lent to the others.
//
//	shares, err := algo.NewShares(algo.PerMinute(100_000), map[string]int64{"search": 50_000, "batch": 20_000})
//	lease, err := shares.Child("search").Acquire(ctx, organization, 1200)
//
// Each floor fills a bucket of its child. The overflow of a full bucket, and the rest of the
// rate, fill a common bucket, from which any child may take the units that its own bucket
// lacks. A loan is never called back, because only the overflow of a floor is lent, never the
// floor itself.
//
// Bounds, for each key:
//
//   - All children together: at most Burst + rate*w units in any window of length w,
//     whatever the clock readings and however many goroutines.
//   - A floor: a child whose requests fit a bucket of that rate, with the depth below, is
//     never denied, whatever the others do. A child that has spent more has its floor back
//     as soon as it stops, at that rate.
//   - Loans: nothing of the rate is lost while the common bucket is not full. A child that
//     was busy keeps at most a second of its floor before the rest is lent.
//
// Of the burst, half is for floors in proportion to the rate, but at least a unit for each
// child with a floor, and at most a second of it; the common bucket has the rest. Limit is
// the most that a child gets at once: its depth and the common one. RetryAfter is exact if
// nothing else is charged meanwhile.
//
// A request may be split between both buckets. A cancellation, or a settlement to less,
// refunds both parts, the common one first, minus all that can have refilled since: the
// refund never creates units, and is smaller than possible if the debt before was large.
// Units that a settlement charges beyond the request are debt of the common bucket, so
// they take no floor from another child.
//
// State is three words and one for each child, under the lock of the key; a decision takes time in
// proportion to the children and allocates nothing. The scheme is the token sharing of MEF
// 10.3, section 12.
//
// Do not use it for shares of capacity in flight: see adaptive.WithFairShares.
type Shares struct {
	children map[string]*Share
	other    *Share
}

// Share is the limiter of one child of [Shares]. The key selects the limit that the
// children share; Reset, Len and Overflowed concern all of them.
type Share struct {
	keyed[*decide.SharesState, decide.SharesState]
}

// NewShares divides r between at most 63 children by name. floors are units in a period of
// r, 0 or more, and together at most the count of r. The options are [Burst] (default: the
// rate's count), [MaxKeys] and [DenyNew]. The error names the field and the invalid value;
// the burst must have a unit for each child with a floor, and one more.
func NewShares(r Rate, floors map[string]int64, opts ...Option) (*Shares, error) {
	k := kind{title: "shares", takes: []string{"Burst", "MaxKeys", "DenyNew"}}
	s, err := k.configure(Spec{Rate: r}, opts)
	if err != nil {
		return nil, err
	}
	if !s.Given("burst") {
		s.Burst = r.Count
	}
	names := slices.Sorted(maps.Keys(floors))
	units := make([]int64, 0, len(names)+1)
	for _, name := range names {
		units = append(units, floors[name])
	}
	p, err := decide.NewShares(r.local(), s.Burst, append(units, 0))
	if err != nil {
		return nil, fmt.Errorf("algo: shares: %w", err)
	}
	store := newValues(s, (*decide.SharesState).Inherit)
	child := func(i int) *Share {
		l, d := new(Share), &decide.Share{Shares: p, Child: i}
		l.use(store, s.DenyNew)
		l.limit.Store(&limit[*decide.SharesState]{decider: d, window: d.FillTime(r.local())})
		return l
	}
	all := &Shares{children: make(map[string]*Share, len(names)), other: child(len(names))}
	for i, name := range names {
		all.children[name] = child(i)
	}
	return all, nil
}

// Child returns the limiter of a child. A name without a floor has a floor of 0: it gets
// only loans.
func (s *Shares) Child(name string) *Share {
	if c, ok := s.children[name]; ok {
		return c
	}
	return s.other
}
