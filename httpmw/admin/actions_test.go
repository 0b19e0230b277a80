package admin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func spend(t testing.TB, l algo.Limiter, key string, n int64) algo.Decision {
	t.Helper()
	lease, err := l.Acquire(context.Background(), key, n)
	require.NoError(t, err)
	return lease.Decision
}

func TestPeekAndReset(t *testing.T) {
	b := bucket(t, algo.PerHour(10))
	a := newAdmin(t, admin.WithPolicy("p", b), admin.WithAuthorize(anybody))
	spend(t, b, "ada", 4)
	for range 3 {
		got := ask(t, a, "why", `{"policy":"p","key":"ada"}`)
		require.Equal(t, 6.0, got["remaining"], "looking spends nothing")
		require.Equal(t, 10.0, got["limit"])
		require.Equal(t, "local", got["source"])
		require.Len(t, got["hash"], 16)
	}
	ask(t, a, "reset", `{"policy":"p","key":"ada"}`)
	require.Equal(t, 10.0, ask(t, a, "why", `{"policy":"p","key":"ada"}`)["remaining"])
}

// A block ends by itself, and says when; other keys do not notice.
func TestBanInThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := admin.Control(bucket(t, algo.PerHour(10)))
		a := newAdmin(t, admin.WithPolicy("p", limiter), admin.WithAuthorize(anybody))
		spend(t, limiter, "ada", 4)
		ask(t, a, "block", `{"policy":"p","key":"ada","seconds":60}`)
		time.Sleep(20 * time.Second)
		want := algo.Decision{Reason: algo.Quota, Limit: 10, RetryAfter: 40 * time.Second, NextAfter: 40 * time.Second, ResetAfter: 40 * time.Second}
		require.Equal(t, want, spend(t, limiter, "ada", 1))
		require.True(t, spend(t, limiter, "bob", 1).Allowed)
		require.Equal(t, 0.0, ask(t, a, "why", `{"policy":"p","key":"ada"}`)["remaining"])
		require.Equal(t, 1.0, at(t, state(t, a), "policies", 0, "blocked"))
		_, err := limiter.Acquire(t.Context(), "ada", -1)
		require.ErrorIs(t, err, algo.ErrCost)

		// It also holds in a composition, which takes all or nothing.
		lease, err := algo.AcquireAll(t.Context(), algo.Request{Limiter: limiter, Key: "ada", N: 1}, algo.Request{Limiter: limiter, Key: "bob", N: 1})
		require.NoError(t, err)
		require.False(t, lease.Allowed)
		require.Equal(t, int64(9), spend(t, limiter, "bob", 0).Remaining)

		time.Sleep(40 * time.Second)
		require.True(t, spend(t, limiter, "ada", 1).Allowed)
		require.Zero(t, limiter.Blocked())

		ask(t, a, "block", `{"policy":"p","key":"ada","seconds":60}`)
		ask(t, a, "reset", `{"policy":"p","key":"ada"}`)
		require.Equal(t, int64(10), spend(t, limiter, "ada", 0).Remaining)
	})
}

func TestMostBlocks(t *testing.T) {
	limiter := admin.Control(bucket(t, algo.PerHour(10)))
	for i := range 1000 {
		require.NoError(t, limiter.Ban(t.Context(), fmt.Sprint(i), time.Hour))
	}
	require.ErrorContains(t, limiter.Ban(t.Context(), "one more", time.Hour), "1000 keys are blocked already")
	require.NoError(t, limiter.Ban(t.Context(), "7", time.Minute), "a known one can be changed")
	look, err := limiter.Acquire(t.Context(), "7", 0)
	require.NoError(t, err)
	require.False(t, look.Allowed, "every cost, 0 too")
	require.ErrorContains(t, limiter.Ban(t.Context(), strings.Repeat("x", 5000), time.Hour), "5000 bytes")
	for _, d := range []time.Duration{0, -1, 366 * 24 * time.Hour} {
		require.ErrorContains(t, limiter.Ban(t.Context(), "k", d), "ban is")
	}
	require.NoError(t, limiter.Reset(t.Context(), "7"))
	require.Equal(t, 999, limiter.Blocked())
}

func TestKillSwitch(t *testing.T) {
	limiter := admin.Control(bucket(t, algo.PerHour(1)))
	a := newAdmin(t, admin.WithPolicy("p", limiter), admin.WithAuthorize(anybody))
	spend(t, limiter, "ada", 1)
	require.False(t, spend(t, limiter, "ada", 1).Allowed)
	require.Equal(t, false, ask(t, a, "switch", `{"policy":"p","on":false}`)["on"])
	require.Equal(t, algo.SourceOff, spend(t, limiter, "ada", 1).Source)
	require.Equal(t, false, at(t, state(t, a), "policies", 0, "on"))
	require.Equal(t, map[string]any{"on": true}, ask(t, a, "switch", `{"policy":"p","on":true}`))
	require.False(t, spend(t, limiter, "ada", 1).Allowed)
}

func TestOrdersThatMakeNoSense(t *testing.T) {
	inFlight := algo.Must(adaptive.New(adaptive.Fixed(2)))
	a := newAdmin(t, admin.WithPolicy("p", bucket(t, algo.PerHour(1))), admin.WithPolicy("flight", inFlight),
		admin.WithPolicy("c", admin.Control(inFlight)), admin.WithPolicy("failing", failing{}), admin.WithAuthorize(anybody))
	for body, want := range map[string]struct {
		action string
		status int
	}{
		``:                           {"why", 400},
		`[]`:                         {"why", 400},
		`{"policy":"p","key":7}`:     {"why", 400},
		`{"policy":"p","color":"r"}`: {"why", 400},
		`{"policy":"p"}{}`:           {"why", 400},
		`{"policy":"p","key":"` + strings.Repeat("k", 5000) + `"}`:   {"why", 400},
		`{"policy":"p","key":"` + strings.Repeat("k", 50_000) + `"}`: {"why", 400},
		`{"policy":"absent"}`:                                      {"why", 404},
		`{"policy":"failing"}`:                                     {"why", 502},
		`{"policy":"p","seconds":5}`:                               {"block", 409},
		`{"policy":"c","seconds":0}`:                               {"block", 400},
		`{"policy":"c","seconds":-5}`:                              {"block", 400},
		`{"policy":"c","seconds":31536001}`:                        {"block", 400},
		`{"policy":"c","seconds":9223372036854775807}`:             {"block", 400},
		`{"policy":"p","on":true}`:                                 {"switch", 409},
		`{"policy":"c"}`:                                           {"switch", 400},
		`{"policy":"flight"}`:                                      {"reset", 409},
		`{"policy":"c","key":"k"}`:                                 {"reset", 409},
		`{"policy":"p","key":"k"}`:                                 {"unblock", 409},
		`{"policy":"c","who":["k"]}`:                               {"block", 400},
		`{"policy":"c","hash":"0123456789abcdef"}`:                 {"why", 404},
		`{"policy":"c","note":"` + strings.Repeat("n", 201) + `"}`: {"block", 400},
	} {
		w := serve(a, order(want.action, body))
		require.Equal(t, want.status, w.Code, body)
		require.NotContains(t, w.Body.String(), "secret")
	}
	require.Equal(t, []any{"why", "reset"}, at(t, state(t, a), "policies", 0, "can"))
	require.Equal(t, []any{"why"}, at(t, state(t, a), "policies", 1, "can"))
	require.Equal(t, []any{"why", "block", "unblock", "switch"}, at(t, state(t, a), "policies", 2, "can"))
}

type failing struct{}

func (failing) Acquire(context.Context, string, int64) (algo.Lease, error) {
	return algo.Lease{}, errors.New("secret address")
}

// Actions are logged, with the hash of the key and not the key.
func TestActionsAreLogged(t *testing.T) {
	var log bytes.Buffer
	limiter := admin.Control(bucket(t, algo.PerHour(1)))
	a, err := admin.New(admin.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), admin.WithPolicy("p", limiter), admin.WithAuthorize(anybody))
	require.NoError(t, err)
	ask(t, a, "block", `{"policy":"p","key":"ada@example.com","unseen":true,"seconds":60,"note":"ticket 7"}`)
	require.Regexp(t, `action=api/block policy=p key=[0-9a-f]{16} by=127\.0\.0\.1 peer=127\.0\.0\.1:4711 note="ticket 7" seconds=60`, log.String())
	require.NotContains(t, log.String(), "ada")
	log.Reset()
	ask(t, a, "why", `{"policy":"p","key":"ada@example.com"}`)
	require.Empty(t, log.String())
}

// Limits on Redis do these things themselves, for all instances.
func TestActionsOnRedis(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	store, err := distributed.New(client, distributed.WithInstances(1), distributed.WithTimeout(5*time.Second), distributed.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()); require.NoError(t, client.Close()) }()
	shared, err := store.TokenBucket("shared", algo.PerHour(10))
	require.NoError(t, err)
	limiter := admin.Control(shared)
	a := newAdmin(t, admin.WithPolicy("p", limiter), admin.WithStore("main", store, "p"), admin.WithAuthorize(anybody))

	spend(t, limiter, "ada", 4)
	got := ask(t, a, "why", `{"policy":"p","key":"ada"}`)
	require.Equal(t, 6.0, got["remaining"])
	require.Equal(t, "remote", got["source"])
	ask(t, a, "block", `{"policy":"p","key":"ada","seconds":60}`)
	require.False(t, spend(t, shared, "ada", 1).Allowed, "beneath the wrapper too")
	require.Equal(t, 1, limiter.Blocked())
	ask(t, a, "reset", `{"policy":"p","key":"ada"}`)
	require.Equal(t, int64(10), spend(t, shared, "ada", 0).Remaining)

	s := state(t, a)
	require.Equal(t, "everywhere", at(t, s, "policies", 0, "scopes", "block"))
	panel := at(t, s, "stores", 0)
	require.Equal(t, "healthy", at(t, panel, "state"))
	require.Equal(t, 100.0, at(t, panel, "percent"))
	require.Equal(t, []any{"p"}, at(t, panel, "policies"))

	server.Kill()
	require.Eventually(t, func() bool {
		spend(t, limiter, "ada", 1)
		return at(t, state(t, a), "stores", 0, "state") == "degraded"
	}, time.Minute, time.Millisecond)
	away := at(t, state(t, a), "stores", 0, "since").(float64)
	require.InDelta(t, time.Now().UnixMilli(), away, 60_000)
	require.Equal(t, 502, serve(a, order("reset", `{"policy":"p","key":"ada"}`)).Code)
	require.Equal(t, away, at(t, state(t, a), "stores", 0, "since"))
	server.Restart()
	require.Eventually(t, func() bool { return at(t, state(t, a), "stores", 0, "state") == "healthy" }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return at(t, state(t, a), "stores", 0, "since") == 0.0 }, 10*time.Second, 10*time.Millisecond)
}

// TestRedisIsFar: a Redis that answers later than the timeout is far, with both times, and not away.
func TestRedisIsFar(t *testing.T) {
	proxy := redistest.StartProxy(t, redistest.Start(t))
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr()})
	store, err := distributed.New(client, distributed.WithInstances(1), distributed.WithTimeout(200*time.Millisecond), distributed.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()); require.NoError(t, client.Close()) }()
	limiter, err := store.TokenBucket("shared", algo.PerHour(1_000_000))
	require.NoError(t, err)
	a := newAdmin(t, admin.WithPolicy("p", limiter), admin.WithStore("main", store, "p"))
	is := func(want string) func() bool {
		return func() bool {
			_, err := limiter.Acquire(context.Background(), "ada", 1)
			return err == nil && at(t, state(t, a), "stores", 0, "state") == want
		}
	}
	require.Eventually(t, is("healthy"), time.Minute, time.Millisecond)
	proxy.Set(redistest.Fault{Delay: 500 * time.Millisecond})
	require.Eventually(t, is("far"), time.Minute, 10*time.Millisecond)
	panel := at(t, state(t, a), "stores", 0)
	require.Equal(t, 200.0, at(t, panel, "timeout_ms"))
	require.Greater(t, at(t, panel, "round_trip_ms"), 200.0)
	proxy.Set(redistest.Fault{BlackHole: true})
	require.Never(t, is("healthy"), 300*time.Millisecond, 10*time.Millisecond)
	proxy.Set(redistest.Fault{})
	require.Eventually(t, is("healthy"), time.Minute, 10*time.Millisecond)
}
