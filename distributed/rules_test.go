package distributed_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

func spec(t testing.TB, text string) algo.Spec {
	t.Helper()
	return must[algo.Spec](t)(algo.Parse(text))
}

func newRules(t testing.TB, s *distributed.Store, opts ...distributed.RulesOption) *distributed.Rules {
	t.Helper()
	opts = append([]distributed.RulesOption{distributed.WithPollInterval(time.Hour)}, opts...)
	return must[*distributed.Rules](t)(s.Rules(t.Context(), "limits", opts...))
}

func TestRulesAreFollowedEverywhere(t *testing.T) {
	server := redistest.Start(t)
	here := newRules(t, newStore(t, server.Client()))
	there := newRules(t, newStore(t, server.Client()))
	l := there.Limiter("search")
	unknown := acquire(t, l, "k", 5)
	require.True(t, unknown.Allowed)
	require.Equal(t, algo.SourceOff, unknown.Source)

	require.NoError(t, here.Put(ctx, "search", distributed.Rule{
		Limit:     spec(t, "10/h"),
		Overrides: map[string]algo.Spec{"vip": spec(t, "1000/h")},
	}))
	require.Eventually(t, func() bool { return acquire(t, l, "k", 0).Source == algo.SourceRemote }, 10*time.Second, time.Millisecond,
		"told by the change, not by the poll")
	require.True(t, remote(t, l, "k", 8).Allowed)
	require.False(t, acquire(t, l, "k", 8).Allowed)
	require.True(t, remote(t, l, "vip", 800).Allowed)
	require.Equal(t, int64(2), remote(t, here.Limiter("search"), "k", 0).Remaining)

	require.NoError(t, here.Put(ctx, "search", distributed.Rule{Limit: spec(t, "10/h burst 20")}))
	require.Eventually(t, func() bool { return acquire(t, l, "k", 0).Limit == 20 }, 10*time.Second, time.Millisecond)
	require.Equal(t, int64(12), acquire(t, l, "k", 0).Remaining, "a changed limit keeps the debt")

	require.NoError(t, here.Delete(ctx, "search"))
	require.Eventually(t, func() bool { return acquire(t, l, "k", 0).Source == algo.SourceOff }, 10*time.Second, time.Millisecond)
	_, err := here.Get(ctx, "search")
	require.ErrorIs(t, err, distributed.ErrNoRule)
}

// The scripts of the blogs fill the bucket whenever the limit is installed.
func TestPuttingTheSameRuleChangesNothing(t *testing.T) {
	store, _ := onRedis(t)
	rules := newRules(t, store)
	rule := distributed.Rule{Limit: spec(t, "10/h wait 5s"), Apps: []string{"a", "b"}, Mode: distributed.Observe}
	require.NoError(t, rules.Put(ctx, "r", rule))
	first := must[distributed.Rule](t)(rules.Get(ctx, "r"))
	require.Equal(t, int64(1), first.Version)
	require.Equal(t, rule.Apps, first.Apps)
	require.Equal(t, rule.Limit.String(), first.Limit.String())
	require.NoError(t, rules.Put(ctx, "r", rule))
	require.Equal(t, first, must[distributed.Rule](t)(rules.Get(ctx, "r")))
	rule.Mode = distributed.Enforce
	require.NoError(t, rules.Put(ctx, "r", rule))
	require.Equal(t, int64(2), must[distributed.Rule](t)(rules.Get(ctx, "r")).Version)
}

func TestModesOfRules(t *testing.T) {
	store, _ := onRedis(t)
	rules := newRules(t, store, distributed.WithApp("shop"))
	l := rules.Limiter("r")
	put := func(r distributed.Rule) { require.NoError(t, rules.Put(ctx, "r", r)) }
	limit := spec(t, "1/h")
	put(distributed.Rule{Limit: limit})
	require.True(t, acquire(t, l, "k", 1).Allowed)
	require.False(t, acquire(t, l, "k", 1).Allowed)
	d, ok := algo.Describe(l)
	require.True(t, ok)
	require.Equal(t, algo.Description{Quota: 1, Window: time.Hour}, d)

	put(distributed.Rule{Limit: limit, Mode: distributed.Observe})
	shadowed := acquire(t, l, "k", 1)
	require.True(t, shadowed.Allowed)
	require.Equal(t, algo.SourceShadowed, shadowed.Source)

	put(distributed.Rule{Limit: limit, Mode: distributed.Disabled})
	require.Equal(t, algo.SourceOff, acquire(t, l, "k", 1).Source)
	_, ok = algo.Describe(l)
	require.False(t, ok)

	put(distributed.Rule{Limit: limit, Apps: []string{"blog"}})
	require.Equal(t, algo.SourceOff, acquire(t, l, "k", 1).Source, "not for this app")
	put(distributed.Rule{Limit: limit, Apps: []string{"blog", "shop"}})
	require.False(t, acquire(t, l, "k", 1).Allowed)
}

// A rule that Redis has lost stays in force; only a tombstone removes it.
func TestRulesSurviveAnEmptyRedis(t *testing.T) {
	store, server := onRedis(t)
	rules := newRules(t, store, distributed.WithPollInterval(20*time.Millisecond))
	require.NoError(t, rules.Put(ctx, "r", distributed.Rule{Limit: spec(t, "3/h")}))
	server.Flush()
	require.NoError(t, rules.Put(ctx, "other", distributed.Rule{Limit: spec(t, "5/h")})) // loads again
	require.Equal(t, int64(3), remote(t, rules.Limiter("r"), "k", 0).Limit)
	require.Equal(t, int64(5), remote(t, rules.Limiter("other"), "k", 0).Limit)
}

func TestRulesThatCannotBeReadChangeNothing(t *testing.T) {
	store, server := onRedis(t)
	rules := newRules(t, store)
	require.NoError(t, rules.Put(ctx, "r", distributed.Rule{Limit: spec(t, "3/h")}))
	for _, text := range []string{"", "garbage", "7 {", "x {}", "7 {}", `7 {"limit":"0/h"}`, `7 {"limit":"3/h","mode":"maybe"}`} {
		server.Do("HSET", "sluice:{::rules:limits}", "r", text)
		require.NoError(t, rules.Put(ctx, "other", distributed.Rule{Limit: spec(t, "5/h")}))
		require.Equal(t, int64(3), remote(t, rules.Limiter("r"), "k", 0).Limit, "%q", text)
	}
}

func TestUnknownRulesCanDeny(t *testing.T) {
	store, _ := onRedis(t)
	l := newRules(t, store, distributed.WithUnknownDenied()).Limiter("nobody knows")
	d := acquire(t, l, "k", 1)
	require.False(t, d.Allowed)
	require.Equal(t, algo.Overload, d.Reason)
	require.Equal(t, algo.SourceOff, d.Source)
	require.True(t, acquire(t, l, "k", 0).Allowed)
	_, err := l.Acquire(ctx, "k", -1)
	require.ErrorIs(t, err, algo.ErrCost)
}

func TestRulesNameTheFieldAndTheValue(t *testing.T) {
	store, _ := onRedis(t)
	rules := newRules(t, store)
	for _, tc := range []struct {
		rule distributed.Rule
		says string
	}{
		{distributed.Rule{}, "count is 0"},
		{distributed.Rule{Limit: spec(t, "1/s"), Mode: "maybe"}, `mode is "maybe"`},
		{distributed.Rule{Limit: spec(t, "fixed-window 1/s")}, `algorithm is "fixed-window"`},
		{distributed.Rule{Limit: spec(t, "1/s keys 7")}, "option MaxKeys"},
		{distributed.Rule{Limit: spec(t, "1/s"), Overrides: map[string]algo.Spec{"k": {}}}, `override "k"`},
	} {
		require.ErrorContains(t, rules.Put(ctx, "r", tc.rule), tc.says)
	}
	require.ErrorContains(t, rules.Put(ctx, "", distributed.Rule{}), "name")
	for _, bad := range []distributed.RulesOption{nil, distributed.WithPollInterval(1)} {
		_, err := store.Rules(ctx, "limits", bad)
		require.Error(t, err)
	}
	_, err := store.Rules(ctx, "")
	require.ErrorContains(t, err, "name")
}

// Rules need no Redis to start with, and leave nothing behind.
func TestRulesWithoutRedis(t *testing.T) {
	client := nowhere(t)
	store := newStore(t, client, distributed.WithTimeout(20*time.Millisecond))
	before := goleak.IgnoreCurrent()
	life, end := context.WithCancel(ctx)
	rules, err := store.Rules(life, "limits", distributed.WithPollInterval(10*time.Millisecond))
	require.NoError(t, err)
	require.True(t, acquire(t, rules.Limiter("r"), "k", 1).Allowed)
	require.Error(t, rules.Put(ctx, "r", distributed.Rule{Limit: spec(t, "3/h")}))
	end()
	require.NoError(t, store.Close())
	goleak.VerifyNone(t, before)
	_, err = store.Rules(ctx, "limits")
	require.ErrorIs(t, err, distributed.ErrClosed)
}
