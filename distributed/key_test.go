package distributed_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
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
	require.Equal(t, int64(len(keys)), server.Do("DBSIZE").(int64)-registryKeys(server))
	requireTTL(t, server)
}

// registryKeys counts the keys that are not limits'.
func registryKeys(s *redistest.Server) int64 {
	return s.Do("EXISTS", "sluice:{::instances}", "sluice:{::instances}:names", "sluice:{::instances}:largest").(int64)
}

// A prefix with colons stays as it is written, so that the pattern of an ACL is what an
// operator expects; braces, which would choose the slot, are escaped. Prefixes that continue one another
// share nothing.
func TestPrefixes(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "shop", "on", ">secret", "~shop:ratelimit:*", "+@all")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "shop", Password: "secret"})
	t.Cleanup(func() { _ = client.Close() })
	for _, prefix := range []string{"shop:ratelimit", "shop:ratelimit:x", "shop:ratelimit:{y}"} {
		store := must[*distributed.Store](t)(distributed.New(client, distributed.WithPrefix(prefix)))
		t.Cleanup(func() { _ = store.Close() })
		require.NoError(t, store.Ping(t.Context()), prefix)
		l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(1)))
		require.True(t, remote(t, l, "alice", 1).Allowed, prefix)
	}
	require.EqualValues(t, 1, server.Do("EXISTS", "shop:ratelimit:{alice}:hourly"))
	require.EqualValues(t, 1, server.Do("EXISTS", "shop:ratelimit:%7By%7D:{alice}:hourly"))
}
