package distributed_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/cases"
	"github.com/sluice-go/sluice/internal/redistest"
)

const (
	accounts     = 5
	planUnits    = 20
	mostUsed     = 100 // times what was asked for
	moneyCallers = 4   // of each instance
)

// lines are the ways in which the line of an instance breaks.
var lines = []redistest.Fault{
	{Refuse: true}, {Reset: true}, {BlackHole: true}, {Delay: 60 * time.Millisecond}, {Jitter: 40 * time.Millisecond, Slice: true},
}

// teller is an instance that sells and serves over a line that breaks.
type teller struct {
	store   *distributed.Store
	credits *distributed.Credits
	first   algo.Limiter
	calls   int
}

// ledger is what really happened, by account.
type ledger struct {
	paid, served [accounts]atomic.Int64
	operations   atomic.Int64
	open         sync.RWMutex // nothing happens while it is locked
}

// What was served of credits is what was paid for, whatever breaks: top-ups that are repeated
// count once, and usage of up to 100 times the request is charged, below zero if need be. The plan
// serves its units, once more without Redis, and as much again as debt. A correction that was lost is
// counted. In a long run the server also evicts what its policy allows, and is killed and restored from its
// log of commands, or from a snapshot.
func TestW2_ServedIsPaid(t *testing.T) {
	t.Parallel()
	t.Run("noeviction", func(t *testing.T) { servedIsPaid(t, redistest.Start(t), cases.Count(300, 3000), "") })
	for i, policy := range []string{"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		if cases.Long() {
			t.Run(policy, func(t *testing.T) {
				server := redistest.Start(t, "--dir", t.TempDir(), "--maxmemory", "4mb", "--maxmemory-policy", policy,
					"--appendonly", []string{"yes", "no"}[i%2], "--appendfsync", "always")
				servedIsPaid(t, server, 900, policy)
			})
		}
	}
}

// restored kills the server every three seconds, which comes back with its data, and fills it with keys that may go.
func restored(t *testing.T, server *redistest.Server, books *ledger, tellers []teller, stop <-chan struct{}) (kills, evicted int) {
	client := server.Client()
	fromSnapshot := client.ConfigGet(ctx, "appendonly").Val()["appendonly"] == "no"
	for at := time.Now(); ; kills++ {
		for n := 0; time.Since(at) < 3*time.Second; n++ {
			select {
			case <-stop:
				return kills, evicted
			case <-time.After(time.Millisecond):
				_ = client.Set(ctx, fmt.Sprint("other", n), make([]byte, 5000), 10_000*time.Hour)
			}
		}
		books.open.Lock()
		for _, l := range tellers {
			assert.Eventually(t, func() bool { return l.store.Stats().Kept == 0 }, 10*time.Second, time.Millisecond)
		}
		if time.Sleep(200 * time.Millisecond); fromSnapshot {
			assert.Equal(t, "OK", server.Do("SAVE"))
		} else {
			books.open.Unlock()
		}
		var n int
		_, stats, _ := strings.Cut(client.Info(ctx, "stats").Val(), "evicted_keys:")
		_, _ = fmt.Sscan(stats, &n)
		evicted += n
		server.Restart()
		if fromSnapshot {
			books.open.Unlock()
		}
		at = time.Now()
	}
}

func servedIsPaid(t *testing.T, server *redistest.Server, calls int, policy string) {
	books, began := new(ledger), time.Now()
	var group sync.WaitGroup
	var tellers []teller
	var proxies []*redistest.Proxy
	for range 3 {
		proxy := redistest.StartProxy(t, server)
		client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ReadTimeout: 300 * time.Millisecond})
		t.Cleanup(func() { _ = client.Close() })
		store := newStore(t, client, append(hasty(), distributed.WithInstances(3))...)
		plan := must[*distributed.Limiter](t)(store.TokenBucket("plan", algo.Per(planUnits, 300*24*time.Hour)))
		credits := must[*distributed.Credits](t)(store.Credits("credits"))
		first := prepaid.First(plan, credits)
		if policy != "" { // an evicted plan is a full one
			first = credits
		}
		tellers = append(tellers, teller{store, credits, first, calls})
		proxies = append(proxies, proxy)
		awake(t, store, plan)
	}
	stop := make(chan struct{})
	for i, p := range proxies {
		group.Go(func() {
			for n := i; ; n++ {
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
		})
	}
	var callers sync.WaitGroup
	for i, teller := range tellers {
		for j := range moneyCallers {
			callers.Go(func() { teller.work(books, rand.New(rand.NewPCG(uint64(i), uint64(j)))) })
		}
	}
	kills, evicted := 0, 0
	if policy != "" {
		group.Go(func() { kills, evicted = restored(t, server, books, tellers, stop) })
	}
	callers.Wait()
	close(stop)
	group.Wait()
	t.Logf("W2: %q: %d operations in %v, %d restores, %d keys evicted", policy, books.operations.Load(), time.Since(began).Round(time.Second), kills, evicted)
	lost := int64(0)
	for _, teller := range tellers {
		closedAgain(t, teller.store)
		require.Eventually(t, func() bool { return teller.store.Stats().Kept == 0 }, 10*time.Second, 10*time.Millisecond)
		lost += teller.store.Stats().Lost
	}
	for i := range accounts {
		paid, served := books.paid[i].Load(), books.served[i].Load()
		require.Positive(t, paid)
		require.Positive(t, served)
		var balance int64
		require.Eventually(t, func() (ok bool) {
			var err error
			balance, err = tellers[0].credits.Balance(ctx, account(i))
			return err == nil
		}, 10*time.Second, 10*time.Millisecond)
		t.Logf("W2: account %d: %d paid, %d served, balance %d, %d corrections lost", i, paid, served, balance, lost)
		require.LessOrEqual(t, served, paid-balance+4*planUnits+lost*10*mostUsed)
	}
}

func account(i int) string { return fmt.Sprint("account", i) }

// work sells and serves.
func (l teller) work(books *ledger, rnd *rand.Rand) {
	for i := range l.calls {
		l.serve(books, rnd, i)
	}
}

func (l teller) serve(books *ledger, rnd *rand.Rand, i int) {
	books.open.RLock()
	defer books.open.RUnlock()
	at := rnd.IntN(accounts)
	if i%10 == 0 {
		id := fmt.Sprint(rnd.Uint64())
		for again := range 50 {
			books.operations.Add(1)
			if l.credits.TopUp(ctx, account(at), id, 1000) == nil && again%2 == i/10%2 { // some are repeated although they succeeded
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		books.paid[at].Add(1000) // or less: a top-up that never succeeded was not served either
	}
	n := 1 + rnd.Int64N(10)
	books.operations.Add(1)
	lease, err := l.first.Acquire(ctx, account(at), n)
	if err != nil || !lease.Allowed {
		time.Sleep(time.Millisecond)
		return
	}
	books.operations.Add(1)
	switch used := n * rnd.Int64N(mostUsed+1); rnd.IntN(4) {
	case 0:
		lease.Release(algo.Canceled)
	case 1:
		lease.Release(algo.Succeeded)
		books.served[at].Add(n)
	default:
		lease.Settle(used)
		lease.Release(algo.Succeeded)
		books.served[at].Add(used)
	}
}
