package distributed_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// TestM3_NoKeyOutlivesItsMeaning: whatever happens to a key, it lives at most a
// second longer than it means anything. After a refund or a reset that is until
// the charges made before would have drained: so long the key keeps them from
// being refunded twice.
func TestM3_NoKeyOutlivesItsMeaning(t *testing.T) {
	const expiry = 5 * time.Second
	store, server := onRedis(t, distributed.WithInstances(1))
	limiters := map[string]*distributed.Limiter{}
	for name, make := range makers(store) {
		limiters[name] = must[*distributed.Limiter](t)(make(name, algo.Per(10, 20*time.Second)))
	}
	limiters["in flight"] = must[*distributed.Limiter](t)(store.InFlight("in flight", 10, expiry))
	for name, l := range limiters {
		t.Run(name, func(t *testing.T) {
			k := &ttlKey{server: server, limiter: l, redisKey: distributed.RedisKey("sluice", name, "k"), rnd: rand.New(rand.NewPCG(31, 32))}
			if name == "in flight" {
				k.least = expiry // units are held until then, or until Release
			}
			for i := range cases.Count(300, 3000) {
				k.change(t)
				k.check(t, i)
			}
			t.Logf("M3: %d operations on a key, longest life %v", cases.Count(300, 3000), k.longest)
		})
	}
}

// ttlKey is a key, and how long it may live.
type ttlKey struct {
	server   *redistest.Server
	limiter  *distributed.Limiter
	redisKey string
	rnd      *rand.Rand
	least    time.Duration
	drained  time.Time // when the last charge will have drained
	account  bool      // a refund or reset since the key was made
	longest  time.Duration
}

// change runs a random operation on the key k.
func (k *ttlKey) change(t *testing.T) {
	t.Helper()
	switch k.rnd.IntN(12) {
	case 0:
		require.NoError(t, k.limiter.Reset(ctx, "k"))
		k.account = true
	case 1:
		require.NoError(t, k.limiter.Ban(ctx, "k", time.Duration(1+k.rnd.Int64N(int64(40*time.Second)))))
	default:
		lease := remote(t, k.limiter, "k", k.rnd.Int64N(4))
		k.charged(lease.ResetAfter)
		switch k.rnd.IntN(4) {
		case 0:
			lease.Settle(k.rnd.Int64N(40) + lease.Limit)
		case 1:
			lease.Release(algo.Canceled)
			k.account = true
		}
	}
}

// charged notes how long a charge weighs.
func (k *ttlKey) charged(d time.Duration) {
	if at := time.Now().Add(d); at.After(k.drained) {
		k.drained = at
	}
}

func (k *ttlKey) check(t *testing.T, step int) {
	t.Helper()
	means := max(remote(t, k.limiter, "k", 0).ResetAfter, k.least)
	k.charged(means)
	ttl := k.server.Do("PTTL", k.redisKey).(int64)
	if ttl == -2 {
		k.account, k.drained = false, time.Time{}
		return
	}
	require.NotEqual(t, int64(-1), ttl, "step %d: no TTL", step)
	if k.account {
		means = max(means, time.Until(k.drained))
	}
	k.longest = max(k.longest, time.Duration(ttl)*time.Millisecond)
	require.LessOrEqual(t, ttl, (means + time.Second).Milliseconds(), "step %d", step)
}
