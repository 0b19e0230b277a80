package distributed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// provers makes each kind of limit whose denials prove later ones, of 4 units a day.
func provers(s *distributed.Store) map[string]*distributed.Limiter {
	all := map[string]*distributed.Limiter{}
	for _, text := range []string{"token-bucket 4/d burst 4", "fixed-window 4/d", "fixed-window 4/d spread", "fixed-window 4/d zone Europe/Berlin", "sliding-window 4/d"} {
		spec, err := algo.Parse(text)
		if err != nil {
			panic(err)
		}
		if all[text], err = s.Limiter(text, spec); err != nil {
			panic(err)
		}
	}
	return all
}

func TestDenyCacheSparesRedis(t *testing.T) {
	store, server := onRedis(t, distributed.WithDenyCache(100), distributed.WithInstances(1))
	require.NoError(t, store.Ping(ctx))
	for name, l := range provers(store) {
		t.Run(name, func(t *testing.T) {
			remote(t, l, "k", 3)
			first := remote(t, l, "k", 2)
			require.False(t, first.Allowed)
			server.Do("CONFIG", "RESETSTAT")
			for range 100 {
				again := acquire(t, l, "k", 2)
				require.False(t, again.Allowed)
				require.Equal(t, algo.SourceDenyCache, again.Source)
				require.Equal(t, algo.Quota, again.Reason)
				require.Equal(t, first.Limit, again.Limit)
				require.Equal(t, first.Remaining, again.Remaining)
				require.InDelta(t, first.RetryAfter, again.RetryAfter, float64(time.Second))
				require.Equal(t, algo.SourceDenyCache, acquire(t, l, "k", 3).Source, "a larger cost is denied the more")
			}
			require.Zero(t, evalCalls(server))
			require.True(t, remote(t, l, "k", 1).Allowed, "a smaller cost is not")
			require.Equal(t, algo.Never, acquire(t, l, "k", 5).Reason)
		})
	}
}

// Whatever is done to the key in this process is seen at once.
func TestDenyCacheForgets(t *testing.T) {
	store, _ := onRedis(t, distributed.WithDenyCache(100))
	for name, l := range provers(store) {
		for how, undo := range map[string]func(lease *algo.Lease){
			"release": func(lease *algo.Lease) { lease.Release(algo.Canceled) },
			"settle":  func(lease *algo.Lease) { lease.Settle(0) },
			"reset":   func(*algo.Lease) { require.NoError(t, l.Reset(ctx, "k")) },
			"ban":     func(*algo.Lease) { require.NoError(t, l.Ban(ctx, "k", time.Hour)) },
			"SetRate": func(*algo.Lease) { require.NoError(t, l.SetRate(algo.PerDay(40))) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				require.NoError(t, l.SetRate(algo.PerDay(4)))
				require.NoError(t, l.Reset(ctx, "k"))
				lease := remote(t, l, "k", 4)
				require.False(t, acquire(t, l, "k", 1).Allowed)
				require.Equal(t, algo.SourceDenyCache, acquire(t, l, "k", 1).Source)
				undo(&lease)
				require.Equal(t, algo.SourceRemote, acquire(t, l, "k", 1).Source)
			})
		}
	}
}

// The windows of another period on the same key may end earlier than the windows of this
// limit: such a denial proves nothing.
func TestNoProofsOfMixedWindows(t *testing.T) {
	store, server := onRedis(t, distributed.WithDenyCache(100))
	for _, algorithm := range []string{"fixed-window", "sliding-window"} {
		hourly := must[*distributed.Limiter](t)(newStore(t, server.Client()).Limiter(algorithm, algo.Spec{Algorithm: algorithm, Rate: algo.PerHour(4)}))
		daily := must[*distributed.Limiter](t)(store.Limiter(algorithm, algo.Spec{Algorithm: algorithm, Rate: algo.PerDay(4)}))
		remote(t, hourly, "k", 4)
		for range 3 {
			require.False(t, remote(t, daily, "k", 1).Allowed, algorithm)
		}
	}
}
