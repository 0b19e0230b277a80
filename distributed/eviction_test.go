package distributed_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// The eviction policy that the guide, the checklist, the package and the examples advise keeps the limits in use: those that
// go are keys that have not been used for a while.
func TestAdvisedEvictionKeepsLimitsInUse(t *testing.T) {
	t.Parallel()
	policies := map[string]bool{}
	for _, page := range []string{"doc.go", "../docs/guides/redis.md", "../docs/guides/production.md", "../programs/gateway/kit/compose.yaml", "../examples/quota/docker-compose.yml"} {
		found := regexp.MustCompile(`(?:volatile|allkeys)-[a-z]+`).FindAllString(string(must[[]byte](t)(os.ReadFile(page))), -1)
		require.NotEmpty(t, found, page)
		policies[found[0]] = true // the first one is the advice
	}
	for policy := range policies {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			store, server := onRedis(t, distributed.WithInstances(1))
			slots := must[*distributed.Limiter](t)(store.InFlight("slots", 10, 30*time.Second))
			bucket := must[*distributed.Limiter](t)(store.TokenBucket("bucket", algo.PerDay(300)))
			other := func(name string, n int) {
				server.Do("EVAL", `for i = 1, ARGV[2] do redis.call('SET', ARGV[1] .. i, string.rep('x', 500), 'EX', 86400) end return 1`, 0, name, n)
			}
			other("old", 4000)
			require.Eventually(t, func() bool { // the server's clock of uses has seconds
				return server.Do("OBJECT", "IDLETIME", "old4000").(int64) >= 2
			}, 20*time.Second, 10*time.Millisecond)
			for range 10 {
				require.True(t, remote(t, slots, "k", 1).Allowed)
			}
			server.Do("CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", used(server), "maxmemory-samples", 10)
			for i := range 200 {
				require.False(t, remote(t, slots, "k", 1).Allowed, "10 of 10 are in flight")
				require.EqualValues(t, 299-i, remote(t, bucket, "k", 1).Remaining)
				other(fmt.Sprint("new", i, ":"), 10)
			}
			require.Less(t, server.Do("DBSIZE"), int64(5500), "nothing was evicted")
		})
	}
}
