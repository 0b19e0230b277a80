//go:build unix

package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// LostReplies requires: a reply that is lost, with its connection or without, charges once.
// go-redis/redis_rate charges four times: the client repeats the script by itself.
//
// alone is for clients that have one command at a time on a connection: a reply may disappear
// while its connection stays. Others, which tell replies by their order, would take the
// next reply for it.
func LostReplies(t *testing.T, open Open, alone bool) {
	faults := map[string]redistest.Fault{
		"cut":        {Kth: 1, Cut: true},
		"half-close": {Kth: 1, HalfClose: true},
	}
	if alone {
		faults["lose"] = redistest.Fault{Kth: 1, Lose: true}
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, store, proxy := onProxy(t, open, distributed.WithTimeout(500*time.Millisecond))
			fault.Command = evalsha(t, l, proxy)
			proxy.Set(fault)
			lost := must[algo.Lease](t)(l.Acquire(ctx, "alice", 1))
			require.Equal(t, algo.SourceFallback, lost.Source)
			require.Equal(t, 1, proxy.Hits())
			proxy.Set(redistest.Fault{})
			closed(t, l, store) // the client dials again
			require.Equal(t, int64(8), remote(t, l, "alice", 0).Remaining, "executed once")
		})
	}
}

// evalsha is the name of the command as the client sends it, after a first decision
// of 1 of 10 units that loads the script.
func evalsha(t testing.TB, l *distributed.Limiter, proxy *redistest.Proxy) string {
	t.Helper()
	require.Equal(t, int64(9), remote(t, l, "alice", 1).Remaining)
	proxy.Set(redistest.Fault{Kth: 1, Command: "evalsha"})
	remote(t, l, "alice", 0)
	require.Equal(t, 1, proxy.Hits(), "the client sends evalsha")
	return "evalsha"
}

func onProxy(t testing.TB, open Open, opts ...distributed.Option) (*distributed.Limiter, *distributed.Store, *redistest.Proxy) {
	t.Helper()
	proxy := redistest.StartProxy(t, redistest.Start(t))
	store := open(t, Server{Addrs: []string{proxy.Addr()}}, Quiet(opts...)...)
	require.Eventually(t, func() bool { return store.Ping(ctx) == nil }, 20*time.Second, 10*time.Millisecond)
	return must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10))), store, proxy
}

// closed waits until Redis makes all decisions.
func closed(t testing.TB, l *distributed.Limiter, store *distributed.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		lease := must[algo.Lease](t)(l.Acquire(ctx, "alice", 0))
		return lease.Source == algo.SourceRemote && store.Stats().Phase == distributed.PhaseClosed
	}, 20*time.Second, 10*time.Millisecond)
}

// LateReplies requires: the caller decides without a reply that comes after the timeout, and
// the late charge is given back.
func LateReplies(t *testing.T, open Open) {
	l, store, proxy := onProxy(t, open, distributed.WithTimeout(200*time.Millisecond))
	proxy.Set(redistest.Fault{Delay: 700 * time.Millisecond})
	for local := 0; local < 3; {
		lease := must[algo.Lease](t)(l.Acquire(ctx, "bob", 2))
		if lease.Source == algo.SourceFallback {
			local++
		}
		lease.Release(algo.Canceled) // of Redis: this process was late, and waited for the reply
	}
	proxy.Set(redistest.Fault{})
	closed(t, l, store)
	require.Eventually(t, func() bool {
		lease := must[algo.Lease](t)(l.Acquire(ctx, "bob", 0))
		return lease.Source == algo.SourceRemote && lease.Remaining == 10
	}, 10*time.Second, 10*time.Millisecond)
}

// LostScripts requires: a server that loses its scripts causes no error and no local decision.
func LostScripts(t *testing.T, open Open) {
	server := redistest.Start(t)
	store := open(t, Server{Addrs: []string{server.Addr()}}, Quiet(distributed.WithTimeout(patient))...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("fast", algo.PerSecond(100_000)))
	stop := make(chan struct{})
	var decisions, others atomic.Int64
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				lease, err := l.Acquire(ctx, fmt.Sprint("user", i%4), 1)
				if err != nil || lease.Source != algo.SourceRemote {
					others.Add(1)
				}
				decisions.Add(1)
			}
		})
	}
	for range 50 {
		server.Do("SCRIPT", "FLUSH")
	}
	close(stop)
	group.Wait()
	require.Positive(t, decisions.Load())
	require.Zero(t, others.Load(), "of %d decisions", decisions.Load())
}

// Outage requires: decisions are local while the server is dead or hangs, within their time, and
// Redis decides again when it is back.
func Outage(t *testing.T, open Open) {
	for name, fail := range map[string]func(*redistest.Server){"killed": (*redistest.Server).Kill, "hangs": (*redistest.Server).Pause} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			store := open(t, Server{Addrs: []string{server.Addr()}},
				Quiet(distributed.WithTimeout(200*time.Millisecond))...)
			l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
			remote(t, l, "alice", 1)
			fail(server)
			began := time.Now()
			for range 1000 {
				require.Equal(t, algo.SourceFallback, must[algo.Lease](t)(l.Acquire(ctx, "bob", 1)).Source)
			}
			require.Less(t, time.Since(began), 10*time.Second, "the breaker opens")
			if name == "killed" {
				server.Restart()
			} else {
				server.Resume()
			}
			require.Eventually(t, func() bool {
				return must[algo.Lease](t)(l.Acquire(ctx, "alice", 0)).Source == algo.SourceRemote
			}, 20*time.Second, 10*time.Millisecond)
		})
	}
}

// ErrorReplies requires that replies with errors are understood: whose fault it is and whether the
// breaker opens.
func ErrorReplies(t *testing.T, open Open) {
	server := redistest.Start(t)
	var kinds sync.Map
	store := open(t, Server{Addrs: []string{server.Addr()}}, Quiet(distributed.WithTimeout(patient),
		distributed.WithHook(func(e distributed.Event) { kinds.Store(e.Kind, e.Err) }))...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
	remote(t, l, "alice", 1)
	server.Do("CONFIG", "SET", "maxmemory", "1")
	require.Equal(t, algo.SourceFallback, must[algo.Lease](t)(l.Acquire(ctx, "alice", 1)).Source)
	server.Do("CONFIG", "SET", "maxmemory", "0")
	require.Eventually(t, func() bool {
		return must[algo.Lease](t)(l.Acquire(ctx, "alice", 0)).Source == algo.SourceRemote
	}, 15*time.Second, 10*time.Millisecond)

	server.Do("ACL", "SETUSER", "default", "-evalsha", "-eval")
	require.Eventually(t, func() bool {
		lease := must[algo.Lease](t)(l.Acquire(ctx, "alice", 1))
		_, seen := kinds.Load(distributed.Misconfigured)
		return lease.Source == algo.SourceFallback && seen
	}, 15*time.Second, 10*time.Millisecond)
	err, _ := kinds.Load(distributed.Misconfigured)
	require.ErrorContains(t, err.(error), "NOPERM")
}

// ClusterFailover requires: when a master dies, the keys of the others stay with Redis, and soon
// after a replica has taken over Redis decides about its keys again.
func ClusterFailover(t *testing.T, open Open) {
	cluster := redistest.StartCluster(t)
	cluster.AddReplicas()
	const interval = time.Second // between probes
	store := open(t, Server{Addrs: cluster.Addrs(), Cluster: true},
		Quiet(distributed.WithTimeout(200*time.Millisecond))...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
	require.Eventually(t, func() bool {
		_, err := l.Acquire(ctx, "warm up", 0)
		return err == nil && store.Stats().Nodes == 3
	}, 10*time.Second, time.Millisecond)
	dead, healthy := keyOf(cluster, 0), keyOf(cluster, 2)
	remote(t, l, dead, 1)
	remote(t, l, healthy, 1)
	cluster.Nodes[0].Kill()
	others, local := 0, 0
	require.Eventually(t, func() bool {
		must[algo.Lease](t)(l.Acquire(ctx, dead, 0))
		if others++; must[algo.Lease](t)(l.Acquire(ctx, healthy, 0)).Source != algo.SourceRemote {
			local++
		}
		return cluster.Promoted(0)
	}, 20*time.Second, time.Millisecond)
	require.Less(t, float64(local), .02*float64(others)+1)
	promoted := time.Now()
	require.Eventually(t, func() bool { return must[algo.Lease](t)(l.Acquire(ctx, dead, 0)).Source == algo.SourceRemote }, 20*time.Second, time.Millisecond)
	took := time.Since(promoted)
	t.Logf("F3: Redis decides again %v after the promotion; %d of %d decisions of another node were local", took.Round(time.Millisecond), local, others)
	require.Less(t, took, 2*interval+4*time.Second)
}

// keyOf is a key in the middle of the slots of a node, of which each has a third.
func keyOf(c *redistest.Cluster, node int64) string {
	for i := 0; ; i++ {
		key := fmt.Sprint("user", i)
		slot := c.Nodes[0].Do("CLUSTER", "KEYSLOT", "{"+key+"}").(int64)
		if third := slot * 3 / 16384; third == node && slot*30/16384%10 == 5 {
			return key
		}
	}
}
