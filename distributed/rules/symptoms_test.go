package rules_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// lag is how far the replica of replicated is behind.
const lag = 400 * time.Millisecond

// delayed passes connections on to addr. What comes back comes later.
func delayed(t testing.TB, addr string, by time.Duration) (port string) {
	t.Helper()
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() {
				defer func() { _ = client.Close() }()
				for {
					data := make([]byte, 1<<16)
					n, err := server.Read(data)
					if err != nil {
						return
					}
					time.AfterFunc(by, func() { _, _ = client.Write(data[:n]) })
				}
			}()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// replicated is a function that makes clients of a master and a replica, which is behind and
// which they read from.
func replicated(t testing.TB) func() redis.UniversalClient {
	t.Helper()
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	replica := redistest.Start(t, "--replicaof", "127.0.0.1 "+delayed(t, master.Addr(), lag))
	require.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(replica.Do("INFO", "replication")), "master_link_status:up")
	}, 15*time.Second, 20*time.Millisecond)
	return func() redis.UniversalClient {
		c := redis.NewClusterClient(&redis.ClusterOptions{
			ReadOnly: true,
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: master.Addr()}, {Addr: replica.Addr()}}}}, nil
			},
		})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// follower makes a set of rules with the defaults, on a store of its own.
func follower(t testing.TB, c redis.UniversalClient) *rules.Rules {
	t.Helper()
	set := must[*rules.Rules](t)(rules.New(t.Context(), newStore(t, c, distributed.WithTimeout(time.Second)), "limits", rules.WithLogger(slog.New(slog.DiscardHandler))))
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	return set
}

// limitOf is the limit of a rule in force, 0 if there is none.
func limitOf(set *rules.Rules, rule string) int64 {
	d := algo.About(set.Limiter(rule))
	return d.Quota
}

func perHour(n int) rules.Rule { return rules.Rule{Limit: algo.Spec{Rate: algo.PerHour(int64(n))}} }

// Clients that read from a replica: a rule is in force here when Put has returned nil, within a
// second elsewhere, and does not go back.
func TestRulesWithReplicasBehind(t *testing.T) {
	client := replicated(t)
	here, there := follower(t, client()), follower(t, client())
	for i := 1; i <= 10; i++ {
		require.NoError(t, here.Put(ctx, "r", perHour(i)))
		for range 20 {
			require.Equal(t, int64(i), limitOf(here, "r"), "change %d", i)
			time.Sleep(5 * time.Millisecond)
		}
	}
	within(t, func() bool { return limitOf(there, "r") == 10 })
}

// within requires what holds elsewhere a second after a change; the machine may be busy.
func within(t testing.TB, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 3*time.Second, 10*time.Millisecond)
}

// Instances that start after a Put know the rule.
func TestNewInstancesKnowTheRules(t *testing.T) {
	client := replicated(t)
	here := follower(t, client())
	for i := range 10 {
		require.NoError(t, here.Put(ctx, "r", perHour(i+1)))
		require.Equal(t, int64(i+1), limitOf(follower(t, client()), "r"), "instance %d", i)
	}
}

// shards is a Ring of two servers, and the one that has the rules.
func shards(t testing.TB) (client func() redis.UniversalClient, home *redistest.Server) {
	t.Helper()
	servers := map[string]*redistest.Server{"a": redistest.Start(t), "b": redistest.Start(t)}
	addrs := map[string]string{"a": servers["a"].Addr(), "b": servers["b"].Addr()}
	client = func() redis.UniversalClient {
		c := redis.NewRing(&redis.RingOptions{Addrs: addrs, HeartbeatFrequency: 50 * time.Millisecond, ReadTimeout: 200 * time.Millisecond, MaxRetries: -1})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	shard := must[*redis.Client](t)(client().(*redis.Ring).GetShardClientForKey("sluice:{::rules:limits}"))
	for name, addr := range addrs {
		if addr == shard.Options().Addr {
			home = servers[name]
		}
	}
	return client, home
}

// A shard of a Ring that returns has old rules. They do not come back, and new instances
// do not get them.
func TestRulesOfAShardThatReturns(t *testing.T) {
	client, home := shards(t)
	here, there := follower(t, client()), follower(t, client())
	for i := 1; i <= 5; i++ {
		require.NoError(t, here.Put(ctx, "r", perHour(100*i)))
	}
	home.Pause()
	require.Eventually(t, func() bool { return here.Put(ctx, "r", perHour(7)) == nil }, 15*time.Second, 50*time.Millisecond)
	home.Resume()
	ring := client().(*redis.Ring)
	require.Eventually(t, func() bool { return ring.Len() == 2 }, 15*time.Second, 20*time.Millisecond)
	for range 100 {
		require.NoError(t, here.Put(ctx, "other", perHour(1)))
		require.Equal(t, int64(7), limitOf(here, "r"))
		time.Sleep(20 * time.Millisecond)
	}
	require.Equal(t, int64(7), limitOf(there, "r"))
	require.Equal(t, int64(7), limitOf(follower(t, client()), "r"))
}

// Eight editors add a key each, at once. Each edit whose Put has returned nil is there.
func TestEditorsDoNotUndoEachOther(t *testing.T) {
	store, _ := onRedis(t)
	set := follower(t, store.Client())
	require.NoError(t, set.Put(ctx, "r", perHour(5)))
	var group sync.WaitGroup
	for i := range 8 {
		editor := follower(t, store.Client())
		group.Go(func() {
			for {
				rule, err := editor.Get(ctx, "r")
				if err != nil {
					continue
				}
				if rule.Overrides == nil {
					rule.Overrides = map[string]algo.Spec{}
				}
				rule.Overrides[fmt.Sprint("user", i)] = algo.Spec{Rate: algo.PerHour(9)}
				if editor.Put(ctx, "r", rule) == nil {
					return
				}
			}
		})
	}
	group.Wait()
	require.Len(t, must[rules.Rule](t)(set.Get(ctx, "r")).Overrides, 8)
}

// A version that is no number of 64 bits is put again.
func TestRulesWithAVersionTooLarge(t *testing.T) {
	store, server := onRedis(t)
	set := follower(t, store.Client())
	require.NoError(t, set.Put(ctx, "r", perHour(5)))
	for _, version := range []string{"9223372036854775807", "9223372036854775808", "99999999999999999999999"} {
		server.Do("HSET", "sluice:{::rules:limits}", "r", version+` {"limit":"3/h"}`)
		for i := range 3 {
			require.NoError(t, set.Put(ctx, "r", perHour(10+i)), version)
			require.Equal(t, int64(10+i), limitOf(set, "r"), version)
			require.Equal(t, int64(10+i), limitOf(follower(t, store.Client()), "r"), version)
		}
	}
}

// A field that does not exist is refused with its name.
func TestRulesRefuseUnknownFields(t *testing.T) {
	var rule rules.Rule
	require.ErrorContains(t, json.Unmarshal([]byte(`{"limit":"5/h","overides":{"k":"9/h"}}`), &rule), "overides")
	require.ErrorContains(t, json.Unmarshal([]byte(`{"limit":{"rate":"5/h","brust":3}}`), &rule), "brust")
	require.NoError(t, json.Unmarshal([]byte(`{"limit":"5/h","overrides":{"k":"9/h"}}`), &rule))
	require.Equal(t, int64(9), rule.Overrides["k"].Rate.Count)
}

// sent is how many bytes a server has sent, and used the time of its processor.
func sent(t testing.TB, server *redistest.Server) (bytes int, used time.Duration) {
	t.Helper()
	for _, section := range []string{"stats", "cpu"} {
		for line := range strings.Lines(fmt.Sprint(server.Client().Info(ctx, section).Val())) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch name {
			case "total_net_output_bytes":
				bytes = must[int](t)(strconv.Atoi(value))
			case "used_cpu_user", "used_cpu_sys":
				used += must[time.Duration](t)(time.ParseDuration(value + "s"))
			}
		}
	}
	return bytes, used
}

// fill puts n rules at once, past the interface.
func fill(t testing.TB, client redis.UniversalClient, n int) {
	t.Helper()
	pipe := client.Pipeline()
	for i := range n {
		text := must[[]byte](t)(json.Marshal(perHour(i + 1)))
		pipe.HSet(ctx, "sluice:{::rules:limits}", fmt.Sprint("rule", i), "1 "+string(text))
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
}

// Rules that are put again as they are change nothing, and cost a reply each.
func TestUnchangedRulesCostNothing(t *testing.T) {
	store, server := onRedis(t)
	fill(t, store.Client(), 1000)
	set, _ := follower(t, store.Client()), follower(t, store.Client())
	before, _ := sent(t, server)
	for i := range 1000 {
		require.NoError(t, set.Put(ctx, fmt.Sprint("rule", i), perHour(i+1)))
	}
	after, _ := sent(t, server)
	require.Less(t, (after-before)/1000, 200, "bytes for a rule")
}

// One rule of many that changes all the time costs what it changes.
func TestAChangeCostsWhatItChanges(t *testing.T) {
	store, server := onRedis(t)
	fill(t, store.Client(), 10_000)
	set, other := follower(t, store.Client()), follower(t, store.Client())
	for _, r := range []*rules.Rules{set, other} {
		require.Eventually(t, func() bool { _, err := r.Get(ctx, "rule9999"); return err == nil }, 10*time.Second, 10*time.Millisecond)
	}
	before, _ := sent(t, server)
	for i := range 100 {
		require.NoError(t, set.Put(ctx, "rule0", perHour(i%2+2)))
	}
	within(t, func() bool { return limitOf(other, "rule0") == 3 })
	after, _ := sent(t, server)
	require.Less(t, (after-before)/100, 2000, "bytes for a change and two instances")
}

// Rules of an idle service dial less and less a server that has gone.
func TestRulesDialLittleInAnOutage(t *testing.T) {
	cases.Slow(t)
	server := redistest.Start(t)
	var dials atomic.Int64
	c := redis.NewClient(&redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}})
	t.Cleanup(func() { _ = c.Close() })
	set := follower(t, c)
	require.NoError(t, set.Put(ctx, "r", perHour(5)))
	server.Kill()
	time.Sleep(11 * time.Second)
	dials.Store(0)
	const seconds = 6
	time.Sleep(seconds * time.Second)
	require.LessOrEqual(t, dials.Load(), int64(3*seconds))
	server.Restart()
	require.Eventually(t, func() bool { return limitOf(follower(t, server.Client()), "r") == 5 }, 5*time.Second, 100*time.Millisecond, "the instance has written what Redis had lost")
}

// Decisions beside one flapping rule of many are made by Redis.
func TestDecisionsBesideAFlappingRule(t *testing.T) {
	cases.Slow(t)
	_, server := onRedis(t)
	fill(t, server.Client(), 10_000)
	store := newStore(t, server.Client(), distributed.WithTimeout(400*time.Millisecond)) // the machine may be busy
	set := newRules(t, store)
	require.NoError(t, set.Put(ctx, "calm", perHour(1_000_000)))
	flaps := newRules(t, newStore(t, server.Client()))
	ends := time.Now().Add(3 * time.Second)
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; time.Now().Before(ends); i++ {
			_ = flaps.Put(ctx, "rule0", perHour(i%2+1))
		}
	})
	local, total, l := 0, 0, set.Limiter("calm")
	for ; time.Now().Before(ends); total++ {
		if acquire(t, l, "k", 1).Source != algo.SourceRemote {
			local++
		}
		time.Sleep(time.Millisecond)
	}
	group.Wait()
	t.Logf("%d of %d decisions were local", local, total)
	require.Less(t, local, total/2)
}
