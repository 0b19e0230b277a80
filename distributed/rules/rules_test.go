package rules_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

var ctx = context.Background()

// nowhere is a client of a server that does not exist.
func nowhere(t testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newStore makes a store that is closed when the test ends.
func newStore(t testing.TB, c redis.UniversalClient, opts ...distributed.Option) *distributed.Store {
	t.Helper()
	s := must[*distributed.Store](t)(distributed.New(c, append(opts, distributed.WithLogger(slog.New(slog.DiscardHandler)), distributed.WithDenyCache(0))...))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// onRedis makes a store on a server of its own. Its timeout is long: the machine may
// be busy.
func onRedis(t testing.TB) (*distributed.Store, *redistest.Server) {
	t.Helper()
	server := redistest.Start(t)
	return newStore(t, server.Client(), distributed.WithTimeout(5*time.Second)), server
}

func acquire(t testing.TB, l algo.Limiter, key string, n int64) algo.Lease {
	t.Helper()
	return must[algo.Lease](t)(l.Acquire(ctx, key, n))
}

// remote acquires and requires that Redis decides.
func remote(t testing.TB, l algo.Limiter, key string, n int64) algo.Lease {
	t.Helper()
	lease := acquire(t, l, key, n)
	require.Equal(t, algo.SourceRemote, lease.Source, "%+v", lease.Decision)
	return lease
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

func spec(t testing.TB, text string) algo.Spec {
	t.Helper()
	return must[algo.Spec](t)(algo.Parse(text))
}

func newRules(t testing.TB, s *distributed.Store, opts ...rules.Option) *rules.Rules {
	t.Helper()
	opts = append([]rules.Option{rules.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	set := must[*rules.Rules](t)(rules.New(t.Context(), s, "limits", opts...))
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	return set
}

// TestRulesNeedGoRedis: a store on another client is refused.
func TestRulesNeedGoRedis(t *testing.T) {
	store, err := distributed.NewWithTransport(nobody{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	_, err = rules.New(t.Context(), store, "limits")
	require.ErrorContains(t, err, "go-redis")
}

type nobody struct{ distributed.Transport }

func (nobody) Cluster() bool { return false }

func TestRulesAreFollowedEverywhere(t *testing.T) {
	server := redistest.Start(t)
	here := newRules(t, newStore(t, server.Client(), distributed.WithTimeout(5*time.Second)))
	there := newRules(t, newStore(t, server.Client(), distributed.WithTimeout(5*time.Second)))
	l := there.Limiter("search")
	unknown := acquire(t, l, "k", 5)
	require.True(t, unknown.Allowed)
	require.Equal(t, algo.SourceOff, unknown.Source)

	require.NoError(t, here.Put(ctx, "search", rules.Rule{
		Limit:     spec(t, "10/h"),
		Overrides: map[string]algo.Spec{"vip": spec(t, "1000/h")},
	}))
	require.Eventually(t, func() bool { return acquire(t, l, "k", 0).Source == algo.SourceRemote }, 10*time.Second, time.Millisecond)
	require.True(t, remote(t, l, "k", 8).Allowed)
	require.False(t, acquire(t, l, "k", 8).Allowed)
	require.True(t, remote(t, l, "vip", 800).Allowed)
	require.Equal(t, int64(2), remote(t, here.Limiter("search"), "k", 0).Remaining)

	require.NoError(t, here.Put(ctx, "search", rules.Rule{Limit: spec(t, "10/h burst 20")}))
	require.Eventually(t, func() bool { return acquire(t, l, "k", 0).Limit == 20 }, 10*time.Second, time.Millisecond)
	require.Equal(t, int64(12), acquire(t, l, "k", 0).Remaining, "a changed limit keeps the debt")

	require.NoError(t, here.Delete(ctx, "search"))
	require.Eventually(t, func() bool { return acquire(t, l, "k", 0).Source == algo.SourceOff }, 10*time.Second, time.Millisecond)
	_, err := here.Get(ctx, "search")
	require.ErrorIs(t, err, rules.ErrNoRule)
}

// Other implementations refill the bucket whenever a limit is installed.
func TestPuttingTheSameRuleChangesNothing(t *testing.T) {
	store, _ := onRedis(t)
	set := newRules(t, store)
	rule := rules.Rule{Limit: spec(t, "10/h wait 5s"), Apps: []string{"a", "b"}, Mode: rules.ModeShadow}
	require.NoError(t, set.Put(ctx, "r", rule))
	first := must[rules.Rule](t)(set.Get(ctx, "r"))
	require.Positive(t, first.Version)
	require.Equal(t, rule.Apps, first.Apps)
	require.Equal(t, rule.Limit.String(), first.Limit.String())
	require.NoError(t, set.Put(ctx, "r", rule))
	require.Equal(t, first, must[rules.Rule](t)(set.Get(ctx, "r")))
	rule.Mode = rules.ModeEnforce
	require.NoError(t, set.Put(ctx, "r", rule))
	rule.Version = first.Version
	require.NoError(t, set.Put(ctx, "r", rule))
	second := must[rules.Rule](t)(set.Get(ctx, "r"))
	require.Greater(t, second.Version, first.Version)
	rule.Apps = nil
	require.ErrorIs(t, set.Put(ctx, "r", rule), rules.ErrRuleChanged)
	require.Equal(t, second, must[rules.Rule](t)(set.Get(ctx, "r")))
}

func TestModesOfRules(t *testing.T) {
	store, _ := onRedis(t)
	set := newRules(t, store, rules.WithApp("shop"))
	l := set.Limiter("r")
	put := func(r rules.Rule) { require.NoError(t, set.Put(ctx, "r", r)) }
	limit := spec(t, "1/h")
	put(rules.Rule{Limit: limit})
	require.True(t, acquire(t, l, "k", 1).Allowed)
	require.False(t, acquire(t, l, "k", 1).Allowed)
	d := algo.About(l)
	require.Equal(t, algo.Description{Rate: algo.PerHour(1), Quota: 1, Remote: true, Window: time.Hour}, d)

	put(rules.Rule{Limit: limit, Mode: rules.ModeShadow})
	shadowed := acquire(t, l, "k", 1)
	require.True(t, shadowed.Allowed)
	require.Equal(t, algo.SourceTrial, shadowed.Source)

	put(rules.Rule{Limit: limit, Mode: rules.ModeOff})
	require.Equal(t, algo.SourceOff, acquire(t, l, "k", 1).Source)
	require.Zero(t, algo.About(l).Quota)

	put(rules.Rule{Limit: limit, Apps: []string{"blog"}})
	require.Equal(t, algo.SourceOff, acquire(t, l, "k", 1).Source, "not for this app")
	put(rules.Rule{Limit: limit, Apps: []string{"blog", "shop"}})
	require.False(t, acquire(t, l, "k", 1).Allowed)
}

// Every algorithm of Redis can be a rule, and an override may have another one. A rule
// that changes its algorithm begins afresh, and finds its keys again when it changes
// back.
func TestRulesOfEveryAlgorithm(t *testing.T) {
	store, _ := onRedis(t)
	here := newRules(t, store)
	there := newRules(t, store)
	l := there.Limiter("r")
	for i, text := range []string{
		"5/h", "leaky-bucket 5/h", "pacer 5/h wait 2h slack 4", "fixed-window 5/h offset 1m", "fixed-window 5/h spread", "sliding-window 5/h", "sliding-log 5/h", "5/h",
	} {
		rule := rules.Rule{Limit: spec(t, text), Overrides: map[string]algo.Spec{"vip": spec(t, "sliding-log 50/h")}}
		require.NoError(t, here.Put(ctx, "r", rule), text)
		require.Equal(t, spec(t, text), must[rules.Rule](t)(there.Get(ctx, "r")).Limit)
		require.Eventually(t, func() bool { // there has read it too
			return algo.About(l).Quota > 0 && rules.VersionOf(there, "r") == rules.VersionOf(here, "r")
		}, 10*time.Second, time.Millisecond, text)
		key := fmt.Sprint("k", i%7) // the last one is the first one's
		for n := range 6 {
			lease := remote(t, l, key, 1)
			require.Equal(t, i < 7 && n < 5, lease.Allowed && lease.Delay == 0, "%s: unit %d", text, n)
		}
		require.True(t, remote(t, l, "vip", 5).Allowed, text)
		require.True(t, remote(t, l, "shared", 1).Allowed, "%s: the key of other algorithms", text)
	}
	require.Equal(t, int64(10), remote(t, l, "vip", 0).Remaining, "eight times 5 of 50")
}

// A rule that Redis has lost stays in force; only a tombstone removes it.
func TestRulesSurviveAnEmptyRedis(t *testing.T) {
	store, server := onRedis(t)
	set := newRules(t, store)
	require.NoError(t, set.Put(ctx, "r", rules.Rule{Limit: spec(t, "3/h")}))
	server.Flush()
	require.NoError(t, set.Put(ctx, "other", rules.Rule{Limit: spec(t, "5/h")})) // loads again
	require.Equal(t, int64(3), remote(t, set.Limiter("r"), "k", 0).Limit)
	require.Equal(t, int64(5), remote(t, set.Limiter("other"), "k", 0).Limit)
}

// garble writes a text in place of a rule's, as a program of another version might.
func garble(server *redistest.Server, text string) {
	server.Do("HSET", "sluice:{::rules:limits}", "r", text)
	server.Do("DEL", "sluice:{::rules:limits}:versions")
}

func TestRulesThatCannotBeReadChangeNothing(t *testing.T) {
	store, server := onRedis(t)
	set := newRules(t, store)
	require.NoError(t, set.Put(ctx, "r", rules.Rule{Limit: spec(t, "3/h")}))
	for _, text := range []string{"", "garbage", "7 {", "x {}", "7 {}", `7 {"limit":"0/h"}`, `7 {"limit":"3/h","mode":"maybe"}`, `7 {"limit":"3/h","mood":"off"}`} {
		garble(server, text)
		require.NoError(t, set.Put(ctx, "other", rules.Rule{Limit: spec(t, "5/h")}))
		require.Equal(t, int64(3), remote(t, set.Limiter("r"), "k", 0).Limit, "%q", text)
		_, err := set.Get(ctx, "r")
		require.Error(t, err, "%q", text)
	}
}

// A rule that cannot be read is logged once, however often it is read.
func TestInvalidRulesAreLoggedOnce(t *testing.T) {
	store, server := onRedis(t)
	var out bytes.Buffer // written under a lock of the rules, read after Close
	set := must[*rules.Rules](t)(rules.New(ctx, store, "limits",
		rules.WithLogger(slog.New(slog.NewTextHandler(&out, nil)))))
	for _, text := range []string{"garbage", `7 {"limit":"` + strings.Repeat("A", 1<<20) + `/h"}`} {
		garble(server, text)
		for i := range 3 {
			require.NoError(t, set.Put(ctx, "other", rules.Rule{Limit: spec(t, fmt.Sprint(i+1, "/h"))})) // loads again
		}
	}
	require.NoError(t, set.Close())
	require.Equal(t, 2, strings.Count(out.String(), "a rule is invalid"), out.String())
	require.Less(t, out.Len(), 4096)
}

// A limiter whose rule does not exist is logged once.
func TestUnknownRulesAreLoggedOnce(t *testing.T) {
	store, _ := onRedis(t)
	var out bytes.Buffer
	set := must[*rules.Rules](t)(rules.New(ctx, store, "limits", rules.WithLogger(slog.New(slog.NewTextHandler(&out, nil))), rules.WithApp("shop")))
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	require.NoError(t, set.Put(ctx, "search", rules.Rule{Limit: spec(t, "3/h")}))
	require.NoError(t, set.Put(ctx, "other", rules.Rule{Limit: spec(t, "3/h"), Apps: []string{"blog"}}))
	for _, name := range []string{"search", "serach", "other"} {
		l := set.Limiter(name)
		for range 3 {
			require.True(t, acquire(t, l, "k", 1).Allowed)
		}
	}
	require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
	require.Contains(t, out.String(), "rule=serach")
}

// A limit for a time ends by itself, and the key's own one is in force again.
func TestTemporaryLimits(t *testing.T) {
	store, _ := onRedis(t)
	set := newRules(t, store)
	rule := rules.Rule{Limit: spec(t, "5/h"), Overrides: map[string]algo.Spec{"vip": spec(t, "7/h")}}
	until := time.Now().Add(2 * time.Second)
	rule.Temporary = map[string]rules.Temporary{
		"vip": {Limit: spec(t, "70/h"), Until: until, Reason: "a sale"},
		"k":   {Limit: spec(t, "1/h"), Until: until},
		"old": {Limit: spec(t, "1/h"), Until: time.Now().Add(-time.Hour)},
	}
	require.NoError(t, set.Put(ctx, "r", rule))
	limit := func(key string) int64 { return acquire(t, set.Limiter("r"), key, 0).Limit }
	require.Equal(t, []int64{70, 1, 5, 5}, []int64{limit("vip"), limit("k"), limit("old"), limit("other")})
	require.Equal(t, "a sale", must[rules.Rule](t)(set.Get(ctx, "r")).Temporary["vip"].Reason)
	time.Sleep(time.Until(until))
	require.Equal(t, []int64{7, 5}, []int64{limit("vip"), limit("k")})
	rule.Temporary["k"] = rules.Temporary{Limit: spec(t, "1/h")}
	require.ErrorContains(t, set.Put(ctx, "r", rule), `temporary limit of "k": until is missing`)
}

// One key is raised for all instances until a time, over a limit that is no rule, and by several
// operators at once; the others keep their limit. It ends by itself, or is taken away.
func TestAdjust(t *testing.T) {
	store, _ := onRedis(t)
	set := newRules(t, store)
	own := must[*distributed.Limiter](t)(store.Limiter("own", spec(t, "5/h")))
	over := set.Over("r", own)
	limit := func(key string) int64 { return acquire(t, over, key, 0).Limit }
	require.Equal(t, int64(5), limit("a"), "no rule, and no word about it")
	until := time.Now().Add(2 * time.Second)
	var operators sync.WaitGroup
	for _, key := range []string{"a", "b", "c", "d"} {
		operators.Go(func() {
			for range 3 {
				assert.NoError(t, over.Adjust(ctx, key, rules.Temporary{Limit: spec(t, "70/h"), Until: until, Reason: "a sale"}))
			}
		})
	}
	operators.Wait()
	require.NoError(t, over.Adjust(ctx, "b", rules.Temporary{}))
	require.Equal(t, []int64{70, 5, 70, 70, 5}, []int64{limit("a"), limit("b"), limit("c"), limit("d"), limit("other")})
	require.Equal(t, "a sale", over.Adjusted()["a"].Reason)
	require.Len(t, over.Adjusted(), 3)
	require.Equal(t, int64(70), algo.Must(algo.Resolve(ctx, over, "a")).(*distributed.Limiter).About().Quota)
	require.ErrorContains(t, over.Adjust(ctx, "a", rules.Temporary{Limit: spec(t, "7/h")}), "until is missing")
	time.Sleep(time.Until(until))
	require.Equal(t, int64(5), limit("a"))
	require.Empty(t, over.Adjusted())
	require.NoError(t, over.Adjust(ctx, "z", rules.Temporary{Limit: spec(t, "1/h"), Until: time.Now().Add(time.Hour)}))
	require.Len(t, must[rules.Rule](t)(set.Get(ctx, "r")).Temporary, 1, "those that ended are gone")

	require.NoError(t, set.Put(ctx, "whole", rules.Rule{Limit: spec(t, "9/h")}))
	whole := set.Limiter("whole")
	require.NoError(t, whole.Adjust(ctx, "a", rules.Temporary{Limit: spec(t, "1/h"), Until: time.Now().Add(time.Hour)}))
	require.Equal(t, int64(1), acquire(t, whole, "a", 0).Limit)
	require.Equal(t, int64(9), acquire(t, whole, "b", 0).Limit)

	for _, tc := range []struct {
		of   *rules.Limiter
		n    int64
		keep bool
	}{{whole, 9, true}, {over, 5, false}} {
		require.True(t, acquire(t, tc.of, "spent", tc.n).Allowed)
		require.NoError(t, tc.of.Adjust(ctx, "spent", rules.Temporary{Limit: spec(t, "90/h"), Until: time.Now().Add(time.Hour)}))
		require.NotEqual(t, tc.keep, acquire(t, tc.of, "spent", 1).Allowed, "debt stays with the limit that is no rule")
		require.NoError(t, tc.of.Adjust(ctx, "spent", rules.Temporary{}))
		require.False(t, acquire(t, tc.of, "spent", 1).Allowed)
	}
}

func TestUnknownRulesCanDeny(t *testing.T) {
	store, _ := onRedis(t)
	l := newRules(t, store, rules.WithUnknownDenied()).Limiter("unknown")
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
	set := newRules(t, store)
	for _, tc := range []struct {
		rule rules.Rule
		says string
	}{
		{rules.Rule{}, "no limit is set; Delete removes a rule"},
		{rules.Rule{Limit: spec(t, "1/s"), Mode: "maybe"}, `mode is "maybe"`},
		{rules.Rule{Limit: spec(t, "strict 1/s")}, `algorithm is "strict", want token-bucket, leaky-bucket, pacer,`},
		{rules.Rule{Limit: spec(t, "sliding-window 1/s cells 10")}, "does not take cells on Redis"},
		{rules.Rule{Limit: spec(t, "1/s keys 7")}, "does not take the option keys"},
		{rules.Rule{Limit: spec(t, "1/s"), Overrides: map[string]algo.Spec{"k": {}}}, `override "k"`},
	} {
		require.ErrorContains(t, set.Put(ctx, "r", tc.rule), tc.says)
	}
	require.ErrorContains(t, set.Put(ctx, "", rules.Rule{}), "name")
	for _, bad := range [][]rules.Option{{{}}, {rules.WithLogger(nil)}} {
		_, err := rules.New(ctx, store, "limits", bad...)
		require.Error(t, err)
	}
	for name, o := range map[string]rules.Option{
		"WithApp": rules.WithApp("a"), "WithUnknownDenied": rules.WithUnknownDenied(),
		"WithLogger": rules.WithLogger(slog.Default()),
	} {
		_, err := rules.New(ctx, store, "limits", o, o)
		require.EqualError(t, err, `rules: "limits": duplicate option `+name)
	}
	_, err := rules.New(ctx, store, "")
	require.ErrorContains(t, err, "name")
}

// Rules need no Redis to start with, and leave nothing behind.
func TestG1_RulesWithoutRedis(t *testing.T) {
	client := nowhere(t)
	store := newStore(t, client, distributed.WithTimeout(20*time.Millisecond))
	before := goleak.IgnoreCurrent()
	life, end := context.WithCancel(ctx)
	set, err := rules.New(life, store, "limits")
	require.NoError(t, err)
	require.False(t, acquire(t, set.Limiter("r"), "k", 1).Allowed, "it is not known whether there is one")
	require.Error(t, set.Put(ctx, "r", rules.Rule{Limit: spec(t, "3/h")}))
	end()
	require.NoError(t, store.Close())
	goleak.VerifyNone(t, before)
	require.NoError(t, set.Close())
}

// A user needs the rights that the guide lists, and no channel.
func TestRulesNeedNoChannel(t *testing.T) {
	_, server := onRedis(t)
	server.Do("ACL", "SETUSER", "limits", "on", ">secret", "~sluice:*", "resetchannels", "+evalsha", "+eval", "+time", "+get", "+set", "+del", "+zadd", "+zcard", "+zrange", "+zrangebyscore", "+zscore",
		"+hget", "+hkeys", "+hlen", "+hset")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "limits", Password: "secret"})
	t.Cleanup(func() { _ = client.Close() })
	r := newRules(t, newStore(t, client))
	rule := rules.Rule{Limit: spec(t, "5/h")}
	require.NoError(t, r.Put(ctx, "a", rule))
	require.Equal(t, rule.Limit, must[rules.Rule](t)(r.Get(ctx, "a")).Limit)
}
