package distributed_test

import (
	"fmt"
	"testing"

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
