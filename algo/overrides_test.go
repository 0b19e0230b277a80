package algo_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestOverrides(t *testing.T) {
	named := map[string]algo.Limiter{}
	for _, n := range []string{"exact", "long", "short", "gold", "rest"} {
		named[n] = bucket(algo.PerHour(1))
	}
	type tier struct{}
	o, err := algo.NewOverrides(algo.Choices{
		Exact:   map[string]algo.Limiter{"eu-west-1": named["exact"], "": named["exact"]},
		Prefix:  map[string]algo.Limiter{"eu-": named["short"], "eu-west-": named["long"]},
		Tiers:   map[string]algo.Limiter{"gold": named["gold"]},
		TierOf:  func(ctx context.Context, _ string) string { s, _ := ctx.Value(tier{}).(string); return s },
		Default: named["rest"],
	})
	require.NoError(t, err)
	gold := context.WithValue(bg, tier{}, "gold")
	for _, c := range []struct {
		ctx       context.Context
		key, want string
	}{
		{bg, "eu-west-1", "exact"}, {gold, "eu-west-1", "exact"}, {bg, "", "exact"},
		{bg, "eu-west-12", "long"}, {bg, "eu-west-", "long"}, {bg, "eu-west", "short"}, {gold, "eu-", "short"},
		{gold, "eu", "gold"}, {bg, "eu", "rest"}, {context.WithValue(bg, tier{}, "silver"), "eu", "rest"},
	} {
		require.Same(t, named[c.want], o.Choose(c.ctx, c.key), "key %q", c.key)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { o.Choose(bg, "eu-west-12") }))

	for says, c := range map[string]algo.Choices{
		"Default is nil":               {},
		`Exact["k"] is nil`:            {Default: named["rest"], Exact: map[string]algo.Limiter{"k": nil}},
		`Prefix["k"] is nil`:           {Default: named["rest"], Prefix: map[string]algo.Limiter{"k": nil}},
		"empty prefix":                 {Default: named["rest"], Prefix: map[string]algo.Limiter{"": named["gold"]}},
		"Tiers and TierOf go together": {Default: named["rest"], Tiers: map[string]algo.Limiter{"gold": named["gold"]}},
	} {
		require.ErrorContains(t, o.Set(c), says)
		_, err := algo.NewOverrides(c)
		require.ErrorContains(t, err, says)
	}
	require.Same(t, named["exact"], o.Choose(bg, "eu-west-1"), "as it was")
}

// Swapped while it is read: every reader sees one choice or the other.
func TestOverridesSetConcurrently(t *testing.T) {
	a, b := bucket(algo.PerHour(1)), bucket(algo.PerHour(1))
	of := func(l algo.Limiter) algo.Choices {
		exact := map[string]algo.Limiter{}
		for i := range 50 {
			exact[strconv.Itoa(i)] = l
		}
		return algo.Choices{Exact: exact, Default: l}
	}
	o, err := algo.NewOverrides(of(a))
	require.NoError(t, err)
	group(4, func(i int) {
		for j := range 500 {
			if i == 0 {
				_ = o.Set(of([]algo.Limiter{a, b}[j%2]))
				continue
			}
			if l := o.Choose(bg, strconv.Itoa(j%60)); l != algo.Limiter(a) && l != algo.Limiter(b) {
				panic("a third choice")
			}
		}
	})
}

func ExampleOverrides() {
	standard := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
	partner := algo.Must(algo.NewTokenBucket(algo.PerHour(5000)))
	choice, err := algo.NewOverrides(algo.Choices{
		Exact:   map[string]algo.Limiter{"monitoring": algo.Unlimited()},
		Prefix:  map[string]algo.Limiter{"partner-": partner},
		Default: standard,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := algo.ByKey(choice.Choose)
	ask := func(key string) {
		lease, _ := limiter.Acquire(context.Background(), key, 1)
		fmt.Println(key, lease.Limit, lease.Source)
		lease.Release(algo.Succeeded)
	}
	ask("monitoring")
	ask("partner-7")
	ask("alice")

	// At run time, for all later requests.
	err = choice.Set(algo.Choices{Exact: map[string]algo.Limiter{"alice": partner}, Default: standard})
	ask("alice")
	fmt.Println(err)
	// Output:
	// monitoring 0 off
	// partner-7 5000 local
	// alice 100 local
	// alice 5000 local
	// <nil>
}
