package algo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
)

// Choices assigns limiters to keys. The first rule that applies to a request
// decides:
//
//  1. Exact: the limiter of this key,
//  2. Prefix: the limiter of the longest listed prefix of the key,
//  3. Tiers: the limiter of the tier that TierOf returns, if it is listed,
//  4. Default.
//
// Only Default is required. For no limit use [Unlimited].
type Choices struct {
	Exact   map[string]Limiter
	Prefix  map[string]Limiter
	Tiers   map[string]Limiter
	TierOf  func(ctx context.Context, key string) string
	Default Limiter
}

// Overrides is a choice of limiters for [ByKey]. It can be replaced as a whole
// while it is in use:
//
//	choice, err := algo.NewOverrides(algo.Choices{Default: standard, ...})
//	limiter := algo.ByKey(choice.Choose)
type Overrides struct {
	current atomic.Pointer[choices]
}

// choices is a Choices that was checked and copied.
type choices struct {
	*matcher[Limiter]
	tiers    map[string]Limiter
	tierOf   func(ctx context.Context, key string) string
	standard Limiter
}

// NewOverrides makes a choice. The error names the entry that has no limiter.
func NewOverrides(c Choices) (*Overrides, error) {
	o := new(Overrides)
	if err := o.Set(c); err != nil {
		return nil, err
	}
	return o, nil
}

// Set replaces the choice at once, for all later requests, and copies the maps.
// The limiters hold the spending of keys: pass the same limiters again to keep
// it. After an error the choice is unchanged.
func (o *Overrides) Set(c Choices) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("algo: overrides: %w", err)
	}
	o.current.Store(&choices{newMatcher(c.Exact, c.Prefix), maps.Clone(c.Tiers), c.TierOf, c.Default})
	return nil
}

func (c *Choices) check() error {
	if c.Default == nil {
		return errors.New("the Default is nil")
	}
	if (c.TierOf == nil) != (len(c.Tiers) == 0) {
		return fmt.Errorf("the fields Tiers and TierOf go together, have %d tiers and TierOf set: %t",
			len(c.Tiers), c.TierOf != nil)
	}
	if _, ok := c.Prefix[""]; ok {
		return errors.New("the Prefix map has the empty prefix: use Default")
	}
	for field, m := range map[string]map[string]Limiter{"Exact": c.Exact, "Prefix": c.Prefix, "Tiers": c.Tiers} {
		for k, l := range m {
			if l == nil {
				return fmt.Errorf("%s[%q] is nil", field, k)
			}
		}
	}
	return nil
}

// Choose returns the limiter of a request, for use with [ByKey]. The zero
// Overrides returns nil.
func (o *Overrides) Choose(ctx context.Context, key string) Limiter {
	c := o.current.Load()
	if c == nil {
		return nil
	}
	if l, ok := c.find(key); ok {
		return l
	}
	if c.tierOf != nil {
		if l, ok := c.tiers[c.tierOf(ctx, key)]; ok {
			return l
		}
	}
	return c.standard
}
