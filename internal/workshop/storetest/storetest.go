//go:build unix

// Package storetest tests the store of package distributed on any client of Redis: the
// tests of package distributed run it on go-redis, and the tests of every other
// transport on its own client.
//
// It is for the tests of this module only.
package storetest

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// Server is the server that a client connects to.
type Server struct {
	Addrs          []string // of the server, of nodes of a cluster, or of the sentinels
	Cluster        bool
	Master         string // the name that the sentinels know; empty: no Sentinel
	Unix           bool   // Addrs is the path of a socket
	TLS            *tls.Config
	User, Password string
	Protocol       int // of RESP: 2 or 3; 0: the client's default
}

// Open makes a store on a client of its own. Both are closed when the test ends.
type Open func(t testing.TB, s Server, opts ...distributed.Option) *distributed.Store

// Quiet are options for servers on a busy machine.
func Quiet(opts ...distributed.Option) []distributed.Option {
	return append([]distributed.Option{distributed.WithLogger(slog.New(slog.DiscardHandler)), distributed.WithInstances(1)}, opts...)
}

const patient = 5 * time.Second

// Run runs everything, each as a test of its own.
func Run(t *testing.T, open Open, leastRights []any) {
	t.Run("Conformance", func(t *testing.T) {
		Conform(t, open(t, Server{Addrs: []string{redistest.Start(t).Addr()}}, Quiet(distributed.WithTimeout(patient))...))
	})
	t.Run("ConformanceBehindSentinels", func(t *testing.T) {
		s := redistest.StartSentinels(t)
		Conform(t, open(t, Server{Addrs: s.Addrs, Master: s.Name}, Quiet(distributed.WithTimeout(patient))...))
	})
	t.Run("ConformanceInACluster", func(t *testing.T) {
		c := redistest.StartCluster(t)
		Conform(t, open(t, Server{Addrs: c.Addrs(), Cluster: true}, Quiet(distributed.WithTimeout(patient))...))
	})
	t.Run("Connections", func(t *testing.T) { Connections(t, open, leastRights) })
	t.Run("LostReplies", func(t *testing.T) { LostReplies(t, open, false) })
	t.Run("LateReplies", func(t *testing.T) { LateReplies(t, open) })
	t.Run("LostScripts", func(t *testing.T) { LostScripts(t, open) })
	t.Run("Outage", func(t *testing.T) { Outage(t, open) })
	t.Run("ErrorReplies", func(t *testing.T) { ErrorReplies(t, open) })
	t.Run("ClusterFailover", func(t *testing.T) { ClusterFailover(t, open) })
}

// Maker is a constructor of a store.
type Maker = func(name string, r algo.Rate, opts ...algo.Option) (*distributed.Limiter, error)

// Makers are the constructors of all algorithms.
func Makers(s *distributed.Store) map[string]Maker {
	return map[string]Maker{
		"token bucket": s.TokenBucket, "leaky bucket": s.LeakyBucket, "fixed window": s.FixedWindow,
		"sliding window": s.SlidingWindow, "sliding log": s.SlidingLog,
	}
}

// Conform runs the kit that the local limiters pass.
func Conform(t *testing.T, store *distributed.Store) {
	made := 0
	for name, make := range Makers(store) {
		t.Run(name, func(t *testing.T) {
			algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
				made++
				return make(fmt.Sprint(name, made), r, opts...)
			}, algotest.Bound{RealTime: true, Units: func(r algo.Rate, w time.Duration) int64 {
				return 2*r.Count + algotest.BurstPlusRate(r, w)
			}})
		})
	}
}

// Connections uses every limit over each way to reach Redis, with both versions of
// its protocol and with the least rights, which leastRights gives to the user limits with
// the password secret; and in a cluster whose slots are spread.
func Connections(t *testing.T, open Open, leastRights []any) {
	secured := redistest.NewTLS(t)
	args, tlsAddr := secured.Args(t)
	socket := filepath.Join(t.TempDir(), "redis")
	server := redistest.Start(t, append(args, "--unixsocket", socket)...)
	server.Do(leastRights...)
	ways := map[string]Server{
		"TCP":  {Addrs: []string{server.Addr()}},
		"TLS":  {Addrs: []string{tlsAddr}, TLS: secured.Config},
		"unix": {Addrs: []string{socket}, Unix: true},
	}
	for way, s := range ways {
		for s.Protocol = 2; s.Protocol <= 3; s.Protocol++ {
			for _, s.User = range []string{"", "limits"} {
				s := s
				name := fmt.Sprintf("%s RESP%d %s", way, s.Protocol, s.User)
				if s.User != "" {
					s.Password = "secret"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					Everything(t, open(t, s, Quiet(distributed.WithTimeout(patient), distributed.WithDenyCache(0))...), name)
				})
			}
		}
	}
	for protocol := 2; protocol <= 3; protocol++ {
		t.Run(fmt.Sprintf("cluster RESP%d", protocol), func(t *testing.T) {
			t.Parallel()
			s := Server{Addrs: redistest.StartMixedCluster(t).Addrs(), Cluster: true, Protocol: protocol}
			Everything(t, open(t, s, Quiet(distributed.WithTimeout(patient), distributed.WithDenyCache(0))...), fmt.Sprint("k", protocol))
		})
	}
}

// Everything uses each limit of the store with a key.
func Everything(t testing.TB, store *distributed.Store, key string) {
	t.Helper()
	limits := []*distributed.Limiter{must[*distributed.Limiter](t)(store.InFlight("busy", 300, 30*time.Second))}
	for _, text := range []string{"100/h", "fixed-window 100/d", "fixed-window 100/day", "sliding-window 100/h", "sliding-log 100/h", "smooth-warming-up 100/h warmup 1m wait 1h"} {
		limits = append(limits, must[*distributed.Limiter](t)(store.Limiter(text, must[algo.Spec](t)(algo.Parse(text)))))
	}
	for _, l := range limits {
		lease := remote(t, l, key, 2)
		require.True(t, lease.Allowed)
		lease.Settle(4)
		lease.Release(algo.Canceled)
		require.True(t, remote(t, l, key, 1).Allowed)
		require.NoError(t, l.Reset(ctx, key))
		require.NoError(t, l.Ban(ctx, key, time.Hour))
		require.False(t, remote(t, l, key, 1).Allowed)
	}
	credits := must[*distributed.Credits](t)(store.Credits("credits"))
	require.NoError(t, credits.TopUp(ctx, key, "1", 20))
	plan := must[*distributed.Limiter](t)(store.TokenBucket("plan", algo.PerHour(10)))
	require.True(t, remote(t, prepaid.First(plan, credits), key, 25).Allowed)
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

var ctx = context.Background()

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// remote acquires and insists that Redis decided.
func remote(t testing.TB, l algo.Limiter, key string, n int64) algo.Lease {
	t.Helper()
	lease := must[algo.Lease](t)(l.Acquire(ctx, key, n))
	require.Equal(t, algo.SourceRemote, lease.Source, "%+v", lease.Decision)
	return lease
}
