//go:build unix

package live_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/live"
)

// On Redis every change except of the algorithm keeps the debt, and two
// processes share it.
func TestRedis(t *testing.T) {
	server := redistest.Start(t)
	open := func() *reload.Limits {
		store, closeStore, err := live.OpenStore("test", config.Store{
			Kind: config.Redis, Addresses: []string{server.Addr()}, Prefix: "p", Timeout: 5 * time.Second, Fallback: "deny",
		}, slog.New(slog.DiscardHandler), func(e distributed.Event) {
			if e.Kind != distributed.InstancesChanged && e.Kind != distributed.MixedParameters {
				t.Errorf("the store met %v: %v", e.Kind, e.Err)
			}
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, closeStore()) })
		return live.NewLimiters(store, nil)
	}
	one, two := open(), open()
	now, _ := apply(t, one, map[string]string{"a": "10/h"})
	require.True(t, spend(t, now["a"], 10).Allowed)
	other, _ := apply(t, two, map[string]string{"a": "10/h"})
	require.False(t, spend(t, other["a"], 1).Allowed, "the other process")

	adjusted, changes := apply(t, one, map[string]string{"a": "5/h"})
	require.Equal(t, reload.Changes{Adjusted: 1, Changed: []string{"a: 10/h -> 5/h"}}, changes)
	require.False(t, spend(t, adjusted["a"], 1).Allowed)

	waiting, changes := apply(t, one, map[string]string{"a": "5/h wait 1s"})
	require.Equal(t, reload.Changes{Adjusted: 1, Changed: []string{"a: 5/h -> 5/h wait 1s"}}, changes)
	require.False(t, spend(t, waiting["a"], 1).Allowed)

	back, _ := apply(t, one, map[string]string{"a": "5/h"})
	require.Same(t, adjusted["a"], back["a"], "limiters of a store are not made twice")

	apply(t, one, nil)
	again, changes := apply(t, one, map[string]string{"a": "5/h"})
	require.Equal(t, reload.Changes{Added: 1}, changes)
	require.Same(t, adjusted["a"], again["a"])

	counted, changes := apply(t, one, map[string]string{"a": "fixed-window 5/h"})
	require.Equal(t, []string{"a"}, changes.Replaced)
	require.True(t, spend(t, counted["a"], 1).Allowed, "another algorithm begins anew")
}

// Behind sentinels the limits follow the primary.
func TestSentinel(t *testing.T) {
	s := redistest.StartSentinels(t)
	store, closeStore, err := live.OpenStore("test", config.Store{
		Kind: config.Redis, Addresses: s.Addrs, Sentinel: s.Name, Prefix: "p", Timeout: 5 * time.Second, Fallback: "deny",
	}, slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, closeStore()) })
	now, _ := apply(t, live.NewLimiters(store, nil), map[string]string{"a": "10/h"})
	d := spend(t, now["a"], 4)
	require.True(t, d.Allowed)
	require.Equal(t, algo.SourceRemote, d.Source)
	s.Master.Kill()
	require.Eventually(t, func() bool { return spend(t, now["a"], 0).Source == algo.SourceRemote }, time.Minute, 50*time.Millisecond)
}

// A password that is replaced while the process runs is used for new connections.
func TestRotatedPassword(t *testing.T) {
	server := redistest.Start(t)
	ctx := t.Context()
	admin := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer admin.Close()
	path := filepath.Join(t.TempDir(), "password")
	change := func(password string) {
		require.NoError(t, os.WriteFile(path, []byte(password+"\n"), 0o600))
		require.NoError(t, admin.ConfigSet(ctx, "requirepass", password).Err())
	}
	change("first")
	store, closeStore, err := live.OpenStore("test", config.Store{
		Kind: config.Redis, Addresses: []string{server.Addr()}, Password: config.Secret{File: path}, Prefix: "p", Timeout: time.Second, Fallback: "local",
	}, slog.New(slog.DiscardHandler), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, closeStore()) })
	now, _ := apply(t, live.NewLimiters(store, nil), map[string]string{"a": "1000/h"})
	remote := func() bool { return spend(t, now["a"], 1).Source == algo.SourceRemote }
	require.True(t, remote())
	change("second")
	require.NoError(t, admin.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
	require.Eventually(t, func() bool {
		return remote() && remote()
	}, 20*time.Second, 50*time.Millisecond, "only with the new password")
}
