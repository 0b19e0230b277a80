package rules_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// war is eight editors who change one rule of many in turns, while stores follow.
type war struct {
	t      *testing.T
	stores []*rules.Rules
	ends   chan struct{}

	mu     sync.Mutex
	edits  []edit
	answer time.Time     // of Redis, the last
	back   time.Time     // when Redis answered again
	late   time.Duration // of this process, the longest
	slow   time.Duration // the longest time until a store had an edit, without those in which Redis was away
	behind [][]edit      // not yet seen, by store
}

// edit is a Put that returned nil at some time.
type edit struct {
	version int64
	at      time.Time
}

func startWar(t *testing.T, client func() redis.UniversalClient) *war {
	t.Helper()
	stores, count := 12, 100
	if cases.Long() {
		stores, count = 50, 10_000
	}
	fill(t, client(), count)
	w := &war{t: t, ends: make(chan struct{}), behind: make([][]edit, stores)}
	for range stores {
		w.stores = append(w.stores, follower(t, client()))
	}
	require.NoError(t, w.stores[0].Put(ctx, "war", perHour(1)))
	for _, set := range w.stores {
		require.Eventually(t, func() bool { _, err := set.Get(ctx, "war"); return err == nil }, 30*time.Second, time.Millisecond)
	}
	return w
}

// during lets the editors fight until event returns and two seconds longer.
func (w *war) during(event func()) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() { w.fight(w.stores[i]) })
	}
	group.Go(w.watch)
	time.Sleep(time.Second)
	event()
	time.Sleep(2 * time.Second)
	close(w.ends)
	group.Wait()
	w.t.Logf("%d edits, each in force in %d stores after at most %v", len(w.edits), len(w.stores), w.slow.Round(time.Millisecond))
	require.NotEmpty(w.t, w.edits)
	require.Less(w.t, w.slow, 3*time.Second+5*w.late, "a second; clients find out later about a failure, and this process was late by %v", w.late)
}

func (w *war) ended() bool {
	select {
	case <-w.ends:
		return true
	default:
		return false
	}
}

// fight changes what it has got, and is refused where another was faster.
func (w *war) fight(set *rules.Rules) {
	for !w.ended() {
		rule, err := set.Get(ctx, "war")
		if err == nil {
			w.answered()
			rule.Limit.Rate.Count++
			err = set.Put(ctx, "war", rule)
		}
		if err == nil {
			e := edit{rules.VersionOf(set, "war"), time.Now()}
			w.mu.Lock()
			w.edits = append(w.edits, e)
			for i := range w.behind {
				w.behind[i] = append(w.behind[i], e)
			}
			w.mu.Unlock()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// answered notes that Redis answers.
func (w *war) answered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if now.Sub(w.answer) > 500*time.Millisecond {
		w.back = now
	}
	w.answer = now
}

// watch looks at all stores until the end, and until all edits are in force.
func (w *war) watch() {
	last := make([]int64, len(w.stores))
	for looked, waiting := time.Now(), true; !w.ended() || waiting; time.Sleep(5 * time.Millisecond) {
		w.late, looked, waiting = max(w.late, time.Since(looked)), time.Now(), false
		for i, set := range w.stores {
			w.mu.Lock()
			now := rules.VersionOf(set, "war")
			if now < last[i] {
				w.t.Errorf("store %d goes back from %d to %d", i, last[i], now)
			}
			last[i] = now
			for len(w.behind[i]) > 0 && w.behind[i][0].version <= now {
				w.slow = max(w.slow, min(time.Since(w.behind[i][0].at), time.Since(w.back)))
				w.behind[i] = w.behind[i][1:]
			}
			behind := w.behind[i]
			w.mu.Unlock()
			if len(behind) == 0 {
				continue
			}
			if waiting = true; time.Since(behind[0].at) > 20*time.Second {
				w.t.Errorf("store %d has not got %d, but %d", i, behind[0].version, now)
				return
			}
		}
	}
}

// Edits of eight are in force everywhere, and no store goes back, whatever becomes of the
// servers.
func TestRulesInAnEditWar(t *testing.T) {
	cases.Slow(t)
	t.Run("replicas 400 ms behind", func(t *testing.T) {
		startWar(t, replicated(t)).during(func() { time.Sleep(2 * time.Second) })
	})
	t.Run("a shard of a Ring goes and returns", func(t *testing.T) {
		client, home := shards(t)
		startWar(t, client).during(func() {
			for range 2 {
				home.Pause()
				time.Sleep(2 * time.Second)
				home.Resume()
				time.Sleep(2 * time.Second)
			}
		})
	})
	t.Run("a cluster fails over", func(t *testing.T) {
		cluster := redistest.StartCluster(t)
		cluster.AddReplicas()
		client := func() redis.UniversalClient {
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ReadOnly: true})
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		node := must[*redis.Client](t)(client().(*redis.ClusterClient).MasterForKey(ctx, "sluice:{::rules:limits}"))
		startWar(t, client).during(func() {
			for i, n := range cluster.Nodes {
				if n.Addr() == node.Options().Addr {
					n.Kill()
					require.Eventually(t, func() bool { return cluster.Promoted(i) }, 15*time.Second, 20*time.Millisecond)
				}
			}
			time.Sleep(time.Second)
		})
	})
	t.Run("the data is lost", func(t *testing.T) {
		server := redistest.Start(t)
		w := startWar(t, func() redis.UniversalClient { return server.Client() })
		w.during(server.Restart)
	})
}

// An instance that begins after Redis has lost its data gets the older rules from those that knew
// them.
func TestRulesThatComeBackAreReadEverywhere(t *testing.T) {
	server := redistest.Start(t)
	line := redistest.StartProxy(t, server)
	old := follower(t, redis.NewClient(&redis.Options{Addr: line.Addr()}))
	require.NoError(t, old.Put(ctx, "older", perHour(1)))
	line.Set(redistest.Fault{Refuse: true})
	server.Flush()
	fresh := follower(t, server.Client())
	require.NoError(t, fresh.Put(ctx, "newer", perHour(2)))
	line.Set(redistest.Fault{})
	require.Eventually(t, func() bool { return limitOf(fresh, "older") == 1 && limitOf(old, "newer") == 2 }, 15*time.Second, 10*time.Millisecond)
}

// The bytes that Redis sends and the processor time that rules take, as a table.
func TestWhatRulesCost(t *testing.T) {
	cases.Slow(t)
	count, stores := 1000, 5
	if cases.Long() {
		count, stores = 10_000, 50
	}
	server := redistest.Start(t)
	fill(t, server.Client(), count)
	var fleet []*rules.Rules
	row := func(what string, times int, do func(i int)) (bytes int) {
		before, used := sent(t, server)
		mine := processor()
		for i := range times {
			do(i)
		}
		after, usedAfter := sent(t, server)
		bytes = (after - before) / times
		t.Logf("| %-46s | %6d | %9d | %8v | %8v |", what, times, bytes,
			((usedAfter - used) / time.Duration(times)).Round(time.Microsecond), ((processor() - mine) / time.Duration(times)).Round(time.Microsecond))
		return bytes
	}
	t.Logf("%d rules, %d instances\n| %-46s | %6s | %9s | %8s | %8s |", count, stores, "each", "times", "bytes", "Redis", "we")
	row("instance that starts", stores, func(int) { fleet = append(fleet, follower(t, server.Client())) })
	for _, set := range fleet {
		must[rules.Rule](t)(set.Get(ctx, "rule0"))
	}
	row("second of all instances, nothing changes", 3, func(int) { time.Sleep(time.Second) })
	require.Less(t, row("rule put again as it is", count, func(i int) { require.NoError(t, fleet[0].Put(ctx, fmt.Sprint("rule", i), perHour(i+1))) }), 300)
	change := row("change of one rule, until it is in force", 5, func(i int) {
		require.NoError(t, fleet[0].Put(ctx, "rule0", perHour(100+i)))
		for _, set := range fleet {
			within(t, func() bool { return limitOf(set, "rule0") == int64(100+i) })
		}
	})
	require.Less(t, change, 2000*stores)
	row("change of one rule that flaps", 1000, func(i int) { require.NoError(t, fleet[0].Put(ctx, "rule0", perHour(i%2+1))) })
	loss := row("loss of all data", 1, func(int) {
		server.Flush()
		require.Eventually(t, func() bool { return server.Client().HLen(ctx, "sluice:{::rules:limits}").Val() == int64(count) }, 60*time.Second, 50*time.Millisecond)
	})
	require.Less(t, loss, 2000*stores, "each instance writes a part, and reads nothing")
	set := follower(t, server.Client())
	require.Equal(t, int64(count), must[rules.Rule](t)(set.Get(ctx, fmt.Sprint("rule", count-1))).Limit.Rate.Count)
}

// processor is the processor time of this process.
func processor() time.Duration {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
