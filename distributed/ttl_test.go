package distributed_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/cases"
)

// M3: whatever is done to a key, it lives until it means nothing, and a second
// longer at most. (What is given back to a window leaves its key until the
// window has passed.)
func TestNoKeyOutlivesItsMeaning(t *testing.T) {
	const expiry = 5 * time.Second
	store, server := onRedis(t, distributed.WithInstances(1))
	limiters := map[string]*distributed.Limiter{}
	for name, make := range makers(store) {
		limiters[name] = must[*distributed.Limiter](t)(make(name, algo.Per(10, 20*time.Second)))
	}
	limiters["in flight"] = must[*distributed.Limiter](t)(store.InFlight("in flight", 10, distributed.Expiry(expiry)))
	for name, l := range limiters {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(31, 32))
			key := distributed.RedisKey("sluice", name, "k")
			for i := range cases.Count(300, 3000) {
				change(t, rnd, l, name == "token bucket" || name == "leaky bucket")
				means := remote(t, l, "k", 0).ResetAfter
				if name == "in flight" {
					means = max(means, expiry) // held until then, or until Release
				}
				ttl := server.Do("PTTL", key).(int64)
				require.NotEqual(t, int64(-1), ttl, "step %d: no TTL", i)
				require.LessOrEqual(t, ttl, (means + time.Second).Milliseconds(), "step %d", i)
			}
			t.Logf("M3: %d operations on a key", cases.Count(300, 3000))
		})
	}
}

// change does anything at all to the key k.
func change(t *testing.T, rnd *rand.Rand, l *distributed.Limiter, givesBack bool) {
	t.Helper()
	switch rnd.IntN(12) {
	case 0:
		require.NoError(t, l.Reset(ctx, "k"))
	case 1:
		require.NoError(t, l.Block(ctx, "k", time.Duration(1+rnd.Int64N(int64(40*time.Second)))))
	default:
		lease := remote(t, l, "k", rnd.Int64N(4))
		switch rnd.IntN(4) {
		case 0:
			lease.Settle(rnd.Int64N(40) + lease.Limit)
		case 1:
			if givesBack {
				lease.Release(algo.Canceled)
			}
		}
	}
}
