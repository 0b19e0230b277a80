package algo

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
)

// Choices says which limiter a key gets. The first that applies does:
//
//  1. Exact, the limiter of this very key,
//  2. Prefix, of the longest prefix of the key that is listed,
//  3. Tiers, of the tier that TierOf names for the request, if it is listed,
//  4. Default.
//
// Only Default is required. [Unlimited] stands for no limit.
type Choices struct {
	Exact   map[string]Limiter
	Prefix  map[string]Limiter
	Tiers   map[string]Limiter
	TierOf  func(ctx context.Context, key string) string
	Default Limiter
}

// Overrides is a choice of limiters for [ByKey] that is replaced as a whole
// while it is in use:
//
//	choice, err := algo.NewOverrides(algo.Choices{Default: standard, ...})
//	limiter := algo.ByKey(choice.Choose)
type Overrides struct {
	p atomic.Pointer[choices]
}

type choices struct {
	*matcher[Limiter]
	tiers  map[string]Limiter
	tierOf func(ctx context.Context, key string) string
	rest   Limiter
}

// NewOverrides makes a choice. The error names the entry that has no limiter.
func NewOverrides(c Choices) (*Overrides, error) {
	o := new(Overrides)
	if err := o.Set(c); err != nil {
		return nil, err
	}
	return o, nil
}

// Set replaces the choice, at once for all later requests. What keys have
// spent is in the limiters: hand in the same ones again to keep it. With an
// error the choice stays as it was. Set copies the maps.
func (o *Overrides) Set(c Choices) error {
	if c.Default == nil {
		return fmt.Errorf("algo: overrides: Default is nil")
	}
	if (c.TierOf == nil) != (len(c.Tiers) == 0) {
		return fmt.Errorf("algo: overrides: Tiers and TierOf go together, have %d tiers and TierOf set: %t",
			len(c.Tiers), c.TierOf != nil)
	}
	if _, ok := c.Prefix[""]; ok {
		return fmt.Errorf("algo: overrides: Prefix has the empty prefix, want Default")
	}
	for field, m := range map[string]map[string]Limiter{"Exact": c.Exact, "Prefix": c.Prefix, "Tiers": c.Tiers} {
		for k, l := range m {
			if l == nil {
				return fmt.Errorf("algo: overrides: %s[%q] is nil", field, k)
			}
		}
	}
	o.p.Store(&choices{newMatcher(c.Exact, c.Prefix), maps.Clone(c.Tiers), c.TierOf, c.Default})
	return nil
}

// Choose returns the limiter of a request. It is made for [ByKey].
func (o *Overrides) Choose(ctx context.Context, key string) Limiter {
	c := o.p.Load()
	if c == nil {
		return nil // the zero Overrides
	}
	if l, ok := c.find(key); ok {
		return l
	}
	if c.tierOf != nil {
		if l, ok := c.tiers[c.tierOf(ctx, key)]; ok {
			return l
		}
	}
	return c.rest
}
