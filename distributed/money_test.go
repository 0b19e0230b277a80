package distributed_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

const (
	accounts     = 5
	planUnits    = 20
	mostUsed     = 100 // times what was asked for
	tellers      = 3   // processes
	moneyCallers = 4   // of each process
)

// lines are the ways in which the line of a process breaks.
var lines = []redistest.Fault{
	{Refuse: true}, {Reset: true}, {BlackHole: true}, {Delay: 60 * time.Millisecond}, {Jitter: 40 * time.Millisecond, Slice: true},
}

// What was served of credits is what was paid for, whatever breaks: top-ups that are repeated
// count once, and usage of up to 100 times the request is charged, below zero if need be. The plan
// serves its units, once more without Redis, and as much again as debt. A correction that was lost is
// counted. Three processes serve over lines that break, and the server is killed and restored from its log
// of commands, or stopped and restored from a snapshot. In a long run it also evicts what its policy allows.
func TestW2_ServedIsPaid(t *testing.T) {
	if task := os.Getenv(taskOfProcess); task != "" {
		tellerOfAProcess(t, task)
		return
	}
	t.Parallel()
	t.Run("noeviction", func(t *testing.T) { servedIsPaid(t, max(cases.Count(300, 3000), 30), "noeviction", "yes") })
	for i, policy := range []string{"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		if cases.Long() {
			t.Run(policy, func(t *testing.T) { servedIsPaid(t, 900, policy, []string{"yes", "no"}[i%2]) })
		}
	}
}

// restored restarts the server at once and every three seconds, and fills one that may evict with keys
// that may go.
func restored(server *redistest.Server, stop <-chan struct{}, evicts, snapshot bool) (restores, evicted int) {
	client := server.Client()
	time.Sleep(300 * time.Millisecond)
	for ; ; restores++ {
		var n int
		_, stats, _ := strings.Cut(client.Info(ctx, "stats").Val(), "evicted_keys:")
		_, _ = fmt.Sscan(stats, &n)
		evicted += n
		if snapshot {
			_ = client.ShutdownSave(ctx)
		}
		server.Restart()
		for at := time.Now(); time.Since(at) < 3*time.Second; n++ {
			select {
			case <-stop:
				return restores + 1, evicted
			case <-time.After(time.Millisecond):
				if evicts {
					_ = client.Set(ctx, fmt.Sprint("other", n), make([]byte, 5000), 10_000*time.Hour)
				}
			}
		}
	}
}

func servedIsPaid(t *testing.T, calls int, policy, log string) {
	evicts, memory := policy != "noeviction", "0"
	if evicts { // an evicted plan is a full one: there is none
		memory = "4mb"
	}
	server := redistest.Start(t, "--dir", t.TempDir(), "--appendonly", log, "--appendfsync", "always", "--maxmemory", memory, "--maxmemory-policy", policy)
	var proxies []*redistest.Proxy
	var processes []*process
	for i := range tellers {
		proxies = append(proxies, redistest.StartProxy(t, server))
		processes = append(processes, startProcess(t, "TestW2_ServedIsPaid", proxies[i].Addr(), i, calls, evicts))
	}
	all := func() {
		for _, p := range processes {
			p.ready(t)
		}
	}
	goOn := func() {
		for _, p := range processes {
			fmt.Fprintln(p.stdin)
		}
	}
	all()
	began, stop := time.Now(), make(chan struct{})
	var group sync.WaitGroup
	for i, p := range proxies {
		group.Go(func() { breaking(p, i, stop) })
	}
	restores, evicted := 0, 0
	group.Go(func() { restores, evicted = restored(server, stop, evicts, log == "no") })
	goOn()
	all()
	close(stop)
	group.Wait()
	goOn()
	var lost, operations int64
	var paid, served [accounts]int64
	for _, p := range processes {
		p.end(t, func(line string) bool {
			var i int
			var n, m int64
			if k, _ := fmt.Sscanf(line, "account %d %d %d", &i, &n, &m); k == 3 {
				paid[i], served[i] = paid[i]+n, served[i]+m
				return true
			}
			k, _ := fmt.Sscanf(line, "all %d %d", &n, &m)
			lost, operations = lost+n, operations+m
			return k == 2
		})
	}
	t.Logf("W2: %s: %d operations of %d processes in %v, %d restores, %d keys evicted, %d corrections lost",
		policy, operations, tellers, time.Since(began).Round(time.Second), restores, evicted, lost)
	require.Equal(t, evicts, evicted > 0)
	credits := must[*distributed.Credits](t)(newStore(t, server.Client()).Credits("credits"))
	for i := range accounts {
		require.Positive(t, paid[i])
		require.Positive(t, served[i])
		balance := must[int64](t)(credits.Balance(ctx, account(i)))
		t.Logf("W2: account %d: %d paid, %d served, balance %d", i, paid[i], served[i], balance)
		require.LessOrEqual(t, served[i], paid[i]-balance+4*planUnits+lost*10*mostUsed)
	}
}

// breaking breaks a line every 300 ms, each time in another way, and mends it at the end.
func breaking(p *redistest.Proxy, n int, stop <-chan struct{}) {
	for ; ; n++ {
		for _, f := range []redistest.Fault{lines[n%len(lines)], {}} {
			p.Set(f)
			select {
			case <-stop:
				p.Set(redistest.Fault{})
				return
			case <-time.After(150 * time.Millisecond):
			}
		}
	}
}

func account(i int) string { return fmt.Sprint("account", i) }

// teller sells and serves over a line that breaks, and knows what really happened.
type teller struct {
	credits      *distributed.Credits
	first        algo.Limiter
	paid, served [accounts]atomic.Int64
	operations   atomic.Int64
}

// tellerOfAProcess is the other process.
func tellerOfAProcess(t *testing.T, task string) {
	var addr string
	var index uint64
	var calls int
	var creditsOnly bool
	must[int](t)(fmt.Sscan(task, &addr, &index, &calls, &creditsOnly))
	client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: 300 * time.Millisecond})
	defer func() { _ = client.Close() }()
	store := newStore(t, client, append(hasty(), distributed.WithInstances(tellers))...)
	plan := must[*distributed.Limiter](t)(store.TokenBucket("plan", algo.Per(planUnits, 300*24*time.Hour)))
	l := &teller{credits: must[*distributed.Credits](t)(store.Credits("credits"))}
	if l.first = l.credits; !creditsOnly {
		l.first = prepaid.First(plan, l.credits)
	}
	awake(t, store, plan)
	fmt.Println("ready")
	_, _ = fmt.Scanln()
	var callers sync.WaitGroup
	for j := range moneyCallers {
		callers.Go(func() {
			rnd := rand.New(rand.NewPCG(index, uint64(j)))
			for i := range calls {
				l.serve(rnd, i)
			}
		})
	}
	callers.Wait()
	fmt.Println("ready")
	_, _ = fmt.Scanln()
	closedAgain(t, store)
	require.Eventually(t, func() bool { return store.Stats().Kept == 0 }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, store.Close())
	fmt.Println("all", store.Stats().Lost, l.operations.Load())
	for i := range accounts {
		fmt.Println("account", i, l.paid[i].Load(), l.served[i].Load())
	}
}

func (l *teller) serve(rnd *rand.Rand, i int) {
	at := rnd.IntN(accounts)
	if i%10 == 0 {
		id := fmt.Sprint(rnd.Uint64())
		for again := range 50 {
			l.operations.Add(1)
			if l.credits.TopUp(ctx, account(at), id, 1000) == nil && again%2 == i/10%2 { // some are repeated although they succeeded
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		l.paid[at].Add(1000) // or less: a top-up that never succeeded was not served either
	}
	n := 1 + rnd.Int64N(10)
	l.operations.Add(1)
	lease, err := l.first.Acquire(ctx, account(at), n)
	if err != nil || !lease.Allowed {
		time.Sleep(time.Millisecond)
		return
	}
	l.operations.Add(1)
	switch used := n * rnd.Int64N(mostUsed+1); rnd.IntN(4) {
	case 0:
		lease.Release(algo.Canceled)
	case 1:
		lease.Release(algo.Succeeded)
		l.served[at].Add(n)
	default:
		lease.Settle(used)
		lease.Release(algo.Succeeded)
		l.served[at].Add(used)
	}
}
