package rules_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// writes is how many commands SET the server has executed.
func writes(server *redistest.Server) string {
	return regexp.MustCompile(`cmdstat_set:calls=\d+`).FindString(fmt.Sprint(server.Do("INFO", "commandstats")))
}

// Rules that deny together charge nothing, not even for a moment, in which other
// requests would be denied.
func TestRulesAreDecidedInOneStep(t *testing.T) {
	store, server := onRedis(t)
	require.NoError(t, store.Ping(ctx))
	set := newRules(t, store)
	require.NoError(t, set.Put(ctx, "tenant", rules.Rule{Limit: spec(t, "10/h")}))
	require.NoError(t, set.Put(ctx, "user", rules.Rule{Limit: spec(t, "1/h"), Overrides: map[string]algo.Spec{"vip": spec(t, "2/h")}}))
	ask := func(user string) algo.Lease {
		return must[algo.Lease](t)(algo.AcquireAll(ctx,
			algo.Request{Limiter: set.Limiter("tenant"), Key: "t", N: 1}, algo.Request{Limiter: set.Limiter("user"), Key: user, N: 1}))
	}
	require.True(t, ask("u").Allowed)
	require.True(t, ask("vip").Allowed)
	require.True(t, ask("vip").Allowed)
	before := writes(server)
	require.NotEmpty(t, before)
	for range 10 {
		require.False(t, ask("u").Allowed)
		require.False(t, ask("vip").Allowed)
	}
	require.Equal(t, before, writes(server))
	require.Equal(t, int64(7), remote(t, set.Limiter("tenant"), "t", 0).Remaining)
}

// Compositions treat rules that are off, unknown or denied for lack of a rule as single
// calls do, and rules are limits over time.
func TestComposedRulesWithoutALimit(t *testing.T) {
	store, _ := onRedis(t)
	set := newRules(t, store)
	strict := newRules(t, store, rules.WithUnknownDenied())
	require.NoError(t, set.Put(ctx, "off", rules.Rule{Limit: spec(t, "1/h"), Mode: rules.ModeOff}))
	for range 3 {
		lease := acquire(t, algo.All(set.Limiter("off"), set.Limiter("unknown")), "k", 1)
		require.True(t, lease.Allowed)
		require.Equal(t, algo.SourceOff, lease.Source)
	}
	lease := acquire(t, algo.All(set.Limiter("off"), strict.Limiter("unknown")), "k", 1)
	require.False(t, lease.Allowed)
	require.Equal(t, algo.Overload, lease.Reason)
	require.False(t, algo.About(set.Limiter("off")).NeedsRelease)
}

// Sets whose names and rules read the same when they are joined share nothing.
func TestSetsOfRulesAreApart(t *testing.T) {
	store, _ := onRedis(t)
	joined := map[string]string{"prod": "eu:search", "prod:eu": "search", "prod%3Aeu": "search"}
	for name, rule := range joined {
		set := must[*rules.Rules](t)(rules.New(t.Context(), store, name))
		t.Cleanup(func() { require.NoError(t, set.Close()) })
		require.NoError(t, set.Put(ctx, rule, rules.Rule{Limit: spec(t, "1/h")}))
		require.True(t, remote(t, set.Limiter(rule), "u", 1).Allowed, name)
	}
	long := strings.Repeat(":", 30)
	set := must[*rules.Rules](t)(rules.New(t.Context(), store, long))
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	require.NoError(t, set.Put(ctx, strings.Repeat(":", 90), rules.Rule{Limit: spec(t, "1/h")}))
	_, err := rules.New(t.Context(), store, long+":")
	require.ErrorContains(t, err, "has 93 bytes")
}
