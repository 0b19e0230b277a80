package distributed_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// A top-up that is repeated with its id counts once, also where Redis evicts all that it may, and
// after its units were spent.
func TestTopUpsCountOnceUnderEviction(t *testing.T) {
	t.Parallel()
	const users = 200
	for _, policy := range []string{"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			store, server := onRedis(t)
			credits := must[*distributed.Credits](t)(store.Credits("credits"))
			for i := range users {
				require.NoError(t, credits.TopUp(ctx, fmt.Sprint("user", i), "payment", 100))
				if i%2 == 1 {
					require.True(t, must[algo.Lease](t)(credits.Acquire(ctx, fmt.Sprint("user", i), 100)).Allowed)
				}
			}
			server.Do("CONFIG", "SET", "maxmemory-policy", policy)
			for i := range 3000 { // other keys that may go
				server.Do("SET", fmt.Sprint("other", i), "0123456789012345678901234567890123456789", "EX", 1_000_000)
			}
			server.Do("CONFIG", "SET", "maxmemory", used(server)*9/10)
			server.Do("SET", "more", "x", "EX", 10_000_000)
			require.Less(t, server.Do("DBSIZE"), int64(3000+users), "nothing was evicted")
			server.Do("CONFIG", "SET", "maxmemory", 0)
			for i := range users {
				key := fmt.Sprint("user", i)
				require.NoError(t, credits.TopUp(ctx, key, "payment", 100))
				require.ErrorIs(t, credits.TopUp(ctx, key, "payment", 99), distributed.ErrTopUpExists)
				left := int64(100)
				if i%2 == 1 {
					left = 0
				}
				require.Equal(t, left, must[int64](t)(credits.Balance(ctx, key)), "%s topped up twice", key)
			}
		})
	}
}

// used is the memory of a server, in bytes.
func used(s interface{ Do(args ...any) any }) (n int64) {
	_, _ = fmt.Sscanf(fmt.Sprint(s.Do("INFO", "memory"))[len("# Memory\r\n"):], "used_memory:%d", &n)
	return n
}

// Balances and receipts of earlier versions are taken over: a payment that is repeated counts once.
func TestCreditsOfEarlierVersions(t *testing.T) {
	store, server := onRedis(t)
	c := must[*distributed.Credits](t)(store.Credits("credits"))
	later := time.Now().Add(time.Hour).Unix()
	a, b := distributed.RedisKey("sluice", "credits", "a"), distributed.RedisKey("sluice", "credits", "b")
	server.Do("SET", a, fmt.Sprint("p70 one 50 ", later, " two 20 ", later, " old 9 1"))
	server.Do("SET", b, "p-5") // with its receipts in keys of their own
	server.Do("SET", b+":one", "50", "EX", 1000)
	for range 2 {
		require.EqualValues(t, 70, must[int64](t)(c.Balance(ctx, "a")))
		require.EqualValues(t, -5, must[int64](t)(c.Balance(ctx, "b")))
		require.NoError(t, c.TopUp(ctx, "a", "one", 50))
		require.NoError(t, c.TopUp(ctx, "a", "two", 20))
		require.NoError(t, c.TopUp(ctx, "b", "one", 50))
		require.ErrorIs(t, c.TopUp(ctx, "b", "one", 51), distributed.ErrTopUpExists)
	}
	require.NoError(t, c.TopUp(ctx, "a", "old", 9), "it has expired")
	require.NoError(t, c.TopUp(ctx, "b", "two", 10))
	require.EqualValues(t, 79, must[int64](t)(c.Balance(ctx, "a")))
	require.EqualValues(t, 5, must[int64](t)(c.Balance(ctx, "b")))
	require.True(t, must[algo.Lease](t)(c.Acquire(ctx, "a", 79)).Allowed)
	require.NoError(t, c.TopUp(ctx, "a", "one", 50))
	require.Zero(t, must[int64](t)(c.Balance(ctx, "a")), "the receipts outlive the balance")
	server.Do("HSET", distributed.RedisKey("sluice", "credits", "h"), "x", "y")
	require.ErrorContains(t, c.TopUp(ctx, "h", "one", 50), "another algorithm")
}

// Receipts that have expired go with later commands, a few with each, and the last ones with their key.
func TestReceiptsExpire(t *testing.T) {
	store, server := onRedis(t)
	c := must[*distributed.Credits](t)(store.Credits("credits"))
	key := distributed.RedisKey("sluice", "credits", "a")
	text := "p10"
	for i := range 20 {
		text += fmt.Sprint(" id", i, " 1 ", 1+i)
	}
	server.Do("SET", key, text)
	require.NoError(t, c.TopUp(ctx, "a", "id19", 5), "expired")
	for range 15 {
		require.True(t, must[algo.Lease](t)(c.Acquire(ctx, "a", 1)).Allowed)
	}
	require.EqualValues(t, 5, server.Do("HLEN", key), "the balance, two numbers, and one receipt in two fields")
	require.NoError(t, c.TopUp(ctx, "a", "id19", 5), "the new one counts still")
	require.Zero(t, must[int64](t)(c.Balance(ctx, "a")))
}
