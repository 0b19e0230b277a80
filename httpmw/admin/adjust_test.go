package admin_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// One key is raised until a time with a reason, and lowered; it ends by itself; other keys have
// their limit; what is wrong is said.
func TestAdjust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		limiter := admin.Control(bucket(t, algo.PerHour(2)))
		a, err := admin.New(admin.WithPolicy("p", algo.Shadow(limiter)), admin.WithAuthorize(anybody), admin.WithClearKeys(),
			admin.WithActor(func(*http.Request) string { return "ann" }), admin.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		spend(t, limiter, "ada", 2)
		require.False(t, spend(t, limiter, "ada", 1).Allowed)
		got := ask(t, a, "adjust", `{"policy":"p","key":"ada","limit":"100/h burst 50","seconds":60,"note":"ticket 7"}`)
		require.Equal(t, float64(time.Now().Add(time.Minute).UnixMilli()), got["until"])
		require.Equal(t, int64(49), spend(t, limiter, "ada", 1).Remaining)
		require.Equal(t, int64(2), spend(t, limiter, "bob", 0).Limit)
		why := ask(t, a, "why", `{"policy":"p","key":"ada"}`)
		require.Equal(t, "100/h burst 50", why["adjusted"])
		require.Contains(t, why["text"], "limit 100/h burst 50 until 2000-01-01 00:01:00: ticket 7 (ann)")
		require.Equal(t, map[string]any{
			"policy": "p", "limit": "100/h burst 50", "hash": got["hash"], "key": "ada", "by": "", "note": "ticket 7 (ann)",
			"scope": "process", "since": 0.0, "until": got["until"],
		}, at(t, state(t, a), "blocks", 0))
		require.Contains(t, log.String(), `action=api/adjust policy=p key=`+got["hash"].(string)+` by=ann`)
		require.Contains(t, log.String(), `note="ticket 7" limit="100/h burst 50" seconds=60`)

		time.Sleep(time.Minute)
		require.Equal(t, int64(2), spend(t, limiter, "ada", 0).Limit, "it ends by itself")
		require.Empty(t, state(t, a)["blocks"])

		ask(t, a, "adjust", `{"policy":"p","key":"ada","limit":"1/h","seconds":60}`)
		require.Equal(t, int64(1), spend(t, limiter, "ada", 0).Limit)
		ask(t, a, "adjust", `{"policy":"p","key":"ada","limit":""}`)
		require.Equal(t, int64(2), spend(t, limiter, "ada", 0).Limit)

		ask(t, a, "block", `{"policy":"p","key":"ada","seconds":60}`)
		for body, status := range map[string]int{
			`{"policy":"p","key":"ada","limit":"1/h","seconds":60}`:     409,
			`{"policy":"p","key":"nobody","limit":"1/h","seconds":60}`:  409,
			`{"policy":"p","key":"bob","limit":"1/h"}`:                  400,
			`{"policy":"p","key":"bob","limit":"many","seconds":60}`:    400,
			`{"policy":"p","key":"bob","limit":"1/h","seconds":"long"}`: 400,
		} {
			require.Equal(t, status, serve(a, order("adjust", body)).Code, body)
		}
	})
}

// Over package rules the limit of the key is another one in all instances, and a block takes it away.
func TestAdjustEverywhere(t *testing.T) {
	server := redistest.Start(t)
	instance := func() (*admin.Controlled, *admin.Admin) {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { _ = client.Close() })
		store, err := distributed.New(client, distributed.WithTimeout(5*time.Second), distributed.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		set, err := rules.New(t.Context(), store, "keys", rules.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		t.Cleanup(func() { _ = set.Close() })
		own, err := store.Limiter("p", algo.Spec{Rate: algo.PerHour(2)})
		require.NoError(t, err)
		l := admin.Control(set.Over("p", own))
		return l, newAdmin(t, admin.WithPolicy("p", l), admin.WithAuthorize(anybody))
	}
	one, page := instance()
	two, other := instance()
	spend(t, one, "ada", 2)
	ask(t, page, "adjust", `{"policy":"p","key":"ada","limit":"100/h","seconds":600}`)
	require.True(t, spend(t, one, "ada", 1).Allowed)
	require.Eventually(t, func() bool { return spend(t, two, "ada", 0).Limit == 100 }, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, "everywhere", at(t, state(t, other), "blocks", 0, "scope"))
	ask(t, other, "block", `{"policy":"p","key":"ada","seconds":600}`)
	require.False(t, spend(t, two, "ada", 1).Allowed)
	require.Eventually(t, func() bool { return !spend(t, one, "ada", 1).Allowed }, 10*time.Second, 20*time.Millisecond)
}

// A full table names the prefixes of the keys that fill it, not the keys.
func TestOriginsOfAFullTable(t *testing.T) {
	l, err := algo.NewTokenBucket(algo.PerHour(1), algo.MaxKeys(100))
	require.NoError(t, err)
	limiter := admin.Control(l)
	a := newAdmin(t, admin.WithPolicy("p", limiter))
	origins := func() any { return at(t, state(t, a), "policies", 0, "table", "origins") }
	spend(t, limiter, "198.51.100.7", 1)
	require.Equal(t, []any{}, origins())
	for i := range 2000 {
		spend(t, limiter, fmt.Sprintf("203.0.113.%d", i), 1)
		if i%4 == 0 {
			spend(t, limiter, fmt.Sprintf("user-%d-%d.%d", i, i, i), 1)
		}
	}
	found := origins().([]any)
	require.Equal(t, "203.0.113.", at(t, found, 0, "prefix"))
	require.InDelta(t, .8, at(t, found, 0, "part"), .1)
	require.Equal(t, "user-", at(t, found, 1, "prefix"))
	require.Len(t, found, 2)
}

// Why answers for all policies that know the key; a limit that denies nothing is marked.
func TestWhyAndMarks(t *testing.T) {
	hour := admin.Control(bucket(t, algo.PerHour(1)))
	a := newAdmin(t, admin.WithPolicy("hour", hour), admin.WithPolicy("trial", algo.Shadow(bucket(t, algo.PerHour(1)))), admin.WithAuthorize(anybody))
	spend(t, hour, "ada", 1)
	all := ask(t, a, "why", `{"key":"ada"}`)
	require.Equal(t, "hour", at(t, all, "policies", 0, "policy"))
	require.Equal(t, "quota", at(t, all, "policies", 0, "reason"))
	require.Regexp(t, `^denied \(quota\): 0 of 1 left, again in (59m59|1h0m0)`, at(t, all, "policies", 0, "text"))
	require.Regexp(t, "^admitted, the limit is on trial", at(t, all, "policies", 1, "text"))
	require.Equal(t, []any{false, true}, []any{at(t, state(t, a), "policies", 0, "off"), at(t, state(t, a), "policies", 1, "off")})
}
