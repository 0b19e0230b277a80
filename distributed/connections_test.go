package distributed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// TestConnections: every limit works over each way to reach Redis that go-redis has,
// with both versions of its protocol, and with the least rights that are documented.
func TestConnections(t *testing.T) {
	secured := redistest.NewTLS(t)
	args, tlsAddr := secured.Args(t)
	socket := filepath.Join(t.TempDir(), "redis")
	server := redistest.Start(t, append(args, "--unixsocket", socket)...)
	server.Do(leastRights(t)...)
	ways := map[string]redis.Options{
		"TCP":  {Addr: server.Addr()},
		"TLS":  {Addr: tlsAddr, TLSConfig: secured.Config},
		"unix": {Network: "unix", Addr: socket},
	}
	for way, o := range ways {
		for protocol := 2; protocol <= 3; protocol++ {
			for _, user := range []string{"", "limits"} {
				name := fmt.Sprintf("%s RESP%d %s", way, protocol, user)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					o := o
					o.Protocol = protocol
					if user != "" {
						o.Username, o.Password = user, "secret"
					}
					c := redis.NewClient(&o)
					t.Cleanup(func() { _ = c.Close() })
					useEverything(t, newStore(t, c), name)
				})
			}
		}
	}
}

// TestClusterConnections: so does a cluster, over TLS and in layouts that moves leave.
func TestClusterConnections(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartMixedCluster(t)
	for protocol := 2; protocol <= 3; protocol++ {
		c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Protocol: protocol})
		t.Cleanup(func() { _ = c.Close() })
		useEverything(t, newStore(t, c), fmt.Sprint("k", protocol))
	}
}

// leastRights is the documented command.
func leastRights(t *testing.T) (words []any) {
	page, err := os.ReadFile("../docs/guides/redis.md")
	require.NoError(t, err)
	for _, w := range strings.Fields(regexp.MustCompile("(?m)^ACL SETUSER limits .*$").FindString(string(page))) {
		words = append(words, w)
	}
	require.NotEmpty(t, words)
	return words
}

// useEverything uses each limit of the store with a key.
func useEverything(t *testing.T, store *distributed.Store, key string) {
	t.Helper()
	limits := []algo.Limiter{must[*distributed.Limiter](t)(store.InFlight("busy", 300))}
	for _, text := range []string{"100/h", "fixed-window 100/d", "fixed-window 100/day", "sliding-window 100/h", "sliding-log 100/h"} {
		spec, err := algo.Parse(text)
		require.NoError(t, err)
		limits = append(limits, must[*distributed.Limiter](t)(store.Limiter(text, spec)))
	}
	for _, l := range limits {
		lease := remote(t, l, key, 2)
		require.True(t, lease.Allowed)
		lease.Settle(4)
		lease.Release(algo.Canceled)
		require.True(t, remote(t, l, key, 1).Allowed)
		require.NoError(t, l.(*distributed.Limiter).Reset(ctx, key))
		require.NoError(t, l.(*distributed.Limiter).Ban(ctx, key, time.Hour))
		require.False(t, remote(t, l, key, 1).Allowed)
	}
	credits := must[*distributed.Credits](t)(store.Credits("credits"))
	require.NoError(t, credits.TopUp(ctx, key, "1", 20))
	plan := must[*distributed.Limiter](t)(store.TokenBucket("plan", algo.PerHour(10)))
	require.True(t, remote(t, must[*distributed.Prepaid](t)(distributed.First(plan, credits)), key, 25).Allowed)
	require.Equal(t, int64(5), must[int64](t)(credits.Balance(ctx, key)))
	shares := must[*distributed.Shares](t)(store.Shares("org", algo.PerHour(1000), map[string]int64{"a": 500}))
	require.True(t, remote(t, shares.Child("a"), key, 1).Allowed)
	ban := must[*distributed.Ban](t)(distributed.NewBan(plan, algo.PerHour(1), time.Hour, 4*time.Hour))
	for range 3 {
		remote(t, ban, key+"eve", 10)
	}
	require.Positive(t, must[time.Duration](t)(ban.Banned(ctx, key+"eve")))
	both := must[algo.Lease](t)(algo.AcquireAll(ctx, algo.Request{Limiter: limits[1], Key: "{" + key + "}a", N: 1}, algo.Request{Limiter: limits[1], Key: "{" + key + "}b", N: 1}))
	require.True(t, both.Allowed)
	require.Equal(t, algo.SourceRemote, both.Source)
}
