package admin_test

import (
	"log/slog"
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

// fleet starts instances of a service with the limit p, 2/h, on one Redis, over its rules.
func fleet(t *testing.T, server *redistest.Server) (*admin.Controlled, *admin.Admin) {
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

// Off on one page is off in all instances, also in one that starts later, and keeps the blocks of all;
// it ends by itself, or on any page.
func TestSwitchEverywhere(t *testing.T) {
	server := redistest.Start(t)
	one, page := fleet(t, server)
	two, other := fleet(t, server)
	within := func(why string, holds func() bool) {
		t.Helper()
		require.Eventually(t, holds, 10*time.Second, 20*time.Millisecond, why)
	}
	admits := func(l algo.Limiter, key string) bool { return spend(t, l, key, 1).Allowed }
	spend(t, one, "ada", 2)
	require.False(t, admits(two, "ada"))
	ask(t, page, "block", `{"policy":"p","key":"mallory","seconds":600,"unseen":true}`)

	answer := ask(t, page, "switch", `{"policy":"p","on":false,"note":"ticket 7"}`)
	within("the other instance", func() bool { return admits(two, "ada") })
	require.Equal(t, algo.SourceOff, spend(t, two, "ada", 1).Source)
	require.InDelta(t, time.Now().Add(time.Hour).UnixMilli(), answer["until"], 60_000, "an hour unless said otherwise")
	three, restarted := fleet(t, server)
	for name, l := range map[string]*admin.Controlled{"one": one, "two": two, "restarted": three} {
		require.True(t, admits(l, "ada"), name)
		require.True(t, algo.About(l).Off, name)
		require.False(t, admits(l, "mallory"), "%s: blocked", name)
	}
	for _, p := range []*admin.Admin{page, other, restarted} {
		policy := at(t, state(t, p), "policies", 0)
		require.Equal(t, false, at(t, policy, "on"))
		require.Equal(t, answer["until"], at(t, policy, "until"))
		require.Equal(t, "ticket 7 (127.0.0.1)", at(t, policy, "why_off"))
		require.Equal(t, "everywhere", at(t, policy, "scopes", "switch"))
	}

	ask(t, restarted, "switch", `{"policy":"p","on":true}`)
	within("on again", func() bool { return !admits(one, "ada") && !admits(two, "ada") })
	ask(t, page, "switch", `{"policy":"p","on":false,"seconds":2}`)
	within("off", func() bool { return admits(two, "ada") })
	within("it ends by itself", func() bool { return !admits(two, "ada") && !admits(one, "ada") })
}

// A limit in this process is switched off in this process, and says so; it ends too.
func TestSwitchOfThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := admin.Control(bucket(t, algo.PerDay(1)))
		a := newAdmin(t, admin.WithPolicy("p", l), admin.WithPolicy("plain", algo.NewSwitch(bucket(t, algo.PerHour(1)))), admin.WithAuthorize(anybody))
		spend(t, l, "k", 1)
		for _, p := range []string{"p", "plain"} {
			answer := ask(t, a, "switch", `{"policy":"`+p+`","on":false}`)
			require.Equal(t, map[string]any{"on": false, "until": float64(time.Now().Add(time.Hour).UnixMilli())}, answer)
		}
		require.True(t, spend(t, l, "k", 1).Allowed)
		require.Equal(t, "process", at(t, state(t, a), "policies", 0, "scopes", "switch"))
		require.Equal(t, "process", at(t, state(t, a), "policies", 1, "scopes", "switch"))
		require.Equal(t, 400, serve(a, order("switch", `{"policy":"p","on":false,"seconds":31536001}`)).Code)
		time.Sleep(time.Hour)
		require.False(t, spend(t, l, "k", 1).Allowed)
		for i := range 2 {
			require.Equal(t, true, at(t, state(t, a), "policies", i, "on"))
		}
	})
}
