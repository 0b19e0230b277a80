package distributed_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// Keys that are made to hurt are keys like any other.
func TestS1_S2_HostileKeys(t *testing.T) {
	store, server := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(2)))
	long := strings.Repeat("x", 64<<10)
	keys := []string{"", "a", "{a}", "a}", "{", "}", "{}", "a:b", ":", "a\x00", "a\n", "a\r\n*1\r\n$8\r\nFLUSHALL\r\n",
		"%7B", "~", " ", "é", "\xff\xfe", long, long + "y", "a}:hourly", "}:{b}:hourly"}
	for range 2 {
		for _, k := range keys {
			require.True(t, remote(t, l, k, 1).Allowed, "%.40q", k)
		}
	}
	for _, k := range keys {
		require.False(t, acquire(t, l, k, 1).Allowed, "%.40q", k)
	}
	limits := 0
	for _, k := range server.Do("KEYS", "*").([]any) {
		if !strings.HasPrefix(k.(string), "sluice:{::") { // the store's own
			limits++
		}
	}
	require.Len(t, keys, limits)
	requireTTL(t, server)
}

// G11: a prefix is what the pattern of an ACL has, so that a user with the rights to it only needs no
// others. Prefixes that continue one another share nothing. With a hash tag all keys are in one
// slot, so that limits on several keys are one step on a cluster too.
func TestPrefixes(t *testing.T) {
	server, cluster := redistest.Start(t), redistest.StartCluster(t)
	for granted, prefixes := range map[string][]string{
		"shop:ratelimit": {"shop:ratelimit", "shop:ratelimit:x", "shop:ratelimit:{y}"},
		"{shop}":         {"{shop}", "{shop}:x", "{shop}:%7By%7D"},
		"~100%":          {"~100%"},
	} {
		for _, s := range append(cluster.Nodes[:], server) {
			s.Do("ACL", "SETUSER", granted, "on", ">secret", "~"+granted+":*", "resetchannels", "+@all")
		}
		for name, client := range map[string]redis.UniversalClient{
			"server":  redis.NewClient(&redis.Options{Addr: server.Addr(), Username: granted, Password: "secret"}),
			"cluster": redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Username: granted, Password: "secret"}),
		} {
			t.Cleanup(func() { _ = client.Close() })
			for _, prefix := range prefixes {
				store := newStore(t, client, distributed.WithPrefix(prefix))
				require.NoError(t, store.Ping(ctx), "%s %s", name, prefix)
				hourly := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(2)))
				daily := must[*distributed.Limiter](t)(store.FixedWindow("daily", algo.PerDay(2)))
				for _, key := range []string{"alice", "{bob}", ""} {
					require.True(t, remote(t, hourly, key, 1).Allowed, "%s %s", name, prefix)
					require.True(t, remote(t, daily, key, 1).Allowed, "%s %s", name, prefix)
				}
				l := must[*distributed.Limiter](t)(store.TokenBucket("more", algo.PerHour(1)))
				lease := must[algo.Lease](t)(algo.AcquireAll(ctx, algo.Request{Limiter: hourly, Key: "alice", N: 1}, algo.Request{Limiter: l, Key: "all", N: 1}))
				require.True(t, lease.Allowed, "%s %s", name, prefix)
				require.Equal(t, algo.SourceRemote, lease.Source)
				require.False(t, remote(t, hourly, "alice", 1).Allowed, "%s %s", name, prefix)
			}
		}
	}
	require.EqualValues(t, 1, server.Do("EXISTS", "shop:ratelimit:{alice}:hourly"))
	require.EqualValues(t, 1, server.Do("EXISTS", "shop:ratelimit:{y}:{alice}:hourly"))
	require.EqualValues(t, 1, server.Do("EXISTS", "{shop}:{alice}:hourly"))
}
