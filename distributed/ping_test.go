package distributed_test

import (
	"context"
	"hash/maphash"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// commands are all commands of the scripts.
func commands(t *testing.T) (all []string) {
	for _, file := range must[[]string](t)(filepath.Glob("*.lua")) {
		for _, found := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(string(must[[]byte](t)(os.ReadFile(file))), -1) {
			all = append(all, "+"+strings.ToLower(found[1]))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Ping reports the lack of any command that a script uses, and passes with all of them.
func TestPingRunsEveryCommand(t *testing.T) {
	server := redistest.Start(t)
	all := commands(t)
	require.Greater(t, len(all), 10)
	for i, command := range append(all, "nothing") {
		rights := []any{"ACL", "SETUSER", command, "on", ">secret", "~sluice:*", "+evalsha", "+eval"}
		for j, other := range all {
			if j != i {
				rights = append(rights, other)
			}
		}
		server.Do(rights...)
		c := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: command, Password: "secret"})
		t.Cleanup(func() { _ = c.Close() })
		err := newStore(t, c).Ping(ctx)
		if command == "nothing" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, distributed.ErrUnavailable, command)
		require.Regexp(t, strings.ToUpper(command[1:])+": .*(NOPERM|can't run this command)", err.Error(), command)
	}
}

// G4: no limit can be decided where scripts may not ask for the time; Ping says so, and so does the
// log of a service that does not ping.
func TestForbiddenTime(t *testing.T) {
	for name, server := range map[string]*redistest.Server{
		"rights": redistest.Start(t), "renamed": redistest.Start(t, "--rename-command", "TIME", ""),
	} {
		server.Do("ACL", "SETUSER", "limits", "on", ">secret", "~sluice:*", "+@all", "-time")
		c := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "limits", Password: "secret"})
		t.Cleanup(func() { _ = c.Close() })
		log := new(textLog)
		store := newStore(t, c, log.logger())
		l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
		require.Equal(t, algo.SourceFallback, acquire(t, l, "k", 1).Source, name)
		require.Regexp(t, "Redis rejected a script .* TIME: ", log.String(), name)
		require.ErrorContains(t, store.Ping(ctx), "TIME: ", name)
	}
}

// A refund that the server forbids opens no breaker: Redis goes on deciding.
func TestAForbiddenRefundOpensNoBreaker(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "limits", "on", ">secret", "~sluice:*", "+@all", "-pttl")
	c := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "limits", Password: "secret"})
	t.Cleanup(func() { _ = c.Close() })
	store := newStore(t, c, distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
	for range 40 {
		lease := remote(t, l, "k", 1)
		lease.Settle(0)
	}
	require.Eventually(t, func() bool { return store.Stats().Lost > 0 }, 5*time.Second, time.Millisecond)
	require.Equal(t, 100, store.Stats().Percent)
	require.Error(t, store.Ping(ctx))
}

// firstKey is a proxy that sends each script to the server of its first key, as twemproxy and
// Envoy do.
type firstKey struct {
	servers [2]*redis.Client
	seed    maphash.Seed
	away    atomic.Bool
}

func (*firstKey) Cluster() bool { return false }

func (*firstKey) Slots(context.Context, string) ([]distributed.SlotRange, error) { return nil, nil }

func (p *firstKey) Do(ctx context.Context, cmds []*distributed.Command) {
	for _, c := range cmds {
		words, _ := c.Words()
		args := make([]any, len(words))
		for i, w := range words {
			args[i] = w
		}
		if p.away.Load() {
			c.Done(nil, distributed.ErrNotSent)
			continue
		}
		server := p.servers[maphash.String(p.seed, words[3])%2]
		reply, err := server.Do(ctx, args...).Int64Slice()
		if err != nil {
			err = distributed.ReplyError(err.Error())
		}
		c.Done(reply, err)
	}
}

// G2: behind such a proxy each key keeps its limit, whether the store is pinged or not, and where the proxy
// comes later than the store.
func TestProxyThatSplitsByTheFirstKey(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *firstKey, *distributed.Store, *events){
		"pinged": func(t *testing.T, _ *firstKey, store *distributed.Store, _ *events) {
			require.NoError(t, store.Ping(ctx))
		},
		"not pinged": func(*testing.T, *firstKey, *distributed.Store, *events) {},
		"away at the start": func(t *testing.T, p *firstKey, store *distributed.Store, e *events) {
			p.away.Store(true)
			require.Error(t, store.Ping(ctx))
			trip(t, must[*distributed.Limiter](t)(store.TokenBucket("trip", algo.PerHour(20))), e)
			p.away.Store(false)
			closedAgain(t, store)
		},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := &firstKey{servers: [2]*redis.Client{redistest.Start(t).Client(), redistest.Start(t).Client()}, seed: maphash.MakeSeed()}
			log, e := new(textLog), new(events)
			store := must[*distributed.Store](t)(distributed.NewWithTransport(proxy, append(quick(e), log.logger())...))
			t.Cleanup(func() { _ = store.Close() })
			start(t, proxy, store, e)
			keepsLimits(t, store)
			require.Contains(t, log.String(), "a proxy runs each script on the server of its first key")
		})
	}
}

// keepsLimits requires that each key gets its 20 units, whether alone or with a key that all share.
func keepsLimits(t *testing.T, store *distributed.Store) {
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(20)))
	other := must[*distributed.Limiter](t)(store.TokenBucket("more", algo.PerHour(1000)))
	var group sync.WaitGroup
	var admitted [40]atomic.Int64
	for user := range admitted {
		for range 5 {
			group.Go(func() {
				for range 8 {
					key := string(rune('A' + user))
					if l, err := algo.AcquireAll(ctx, algo.Request{Limiter: other, Key: "all", N: 1}, algo.Request{Limiter: l, Key: key, N: 1}); err == nil && l.Allowed {
						admitted[user].Add(1)
					}
					if lease, err := l.Acquire(ctx, key, 1); err == nil && lease.Allowed {
						admitted[user].Add(1)
					}
				}
			})
		}
	}
	group.Wait()
	for user := range admitted {
		require.Equal(t, int64(20), admitted[user].Load(), "user %d", user)
	}
}

// Connections that take longer than the timeout to open are no distance.
func TestSlowDialsAreNoDistance(t *testing.T) {
	virtually(t, redistest.Start(t), func(t *testing.T, near *redis.Client, _ *redistest.Wire) {
		o := *near.Options()
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(120 * time.Millisecond)
			return near.Options().Dialer(ctx, network, addr)
		}
		c := redis.NewClient(&o)
		t.Cleanup(func() { _ = c.Close() })
		log := new(textLog)
		store := newStore(t, c, distributed.WithTimeout(80*time.Millisecond), log.logger(), distributed.WithInstances(1))
		l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
		acquire(t, l, "k", 1)
		time.Sleep(120 * time.Millisecond)
		var group sync.WaitGroup // each on a connection of its own, as on a long way
		for range 16 {
			group.Go(func() {
				for range 5 {
					acquire(t, l, "k", 1)
				}
			})
		}
		group.Wait()
		require.Eventually(t, func() bool { return acquire(t, l, "k", 1).Source == algo.SourceRemote }, 10*time.Second, 10*time.Millisecond)
		require.NotContains(t, log.String(), "answers take")
	})
}

// A Ping that repeats sends the scripts of limits only, until the server has lost them.
func TestPingsAreCheap(t *testing.T) {
	server := redistest.Start(t)
	c := server.Client()
	store := newStore(t, c, distributed.WithInstances(1))
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1000)))
	sent := func() int {
		server.Do("CONFIG", "RESETSTAT")
		require.NoError(t, store.Ping(ctx))
		return evalCalls(server)
	}
	least := func() int { return min(sent(), sent(), sent()) } // a command may be repeated on a busy machine
	first := sent()
	few := least()
	require.Less(t, few, first/2)
	server.Do("SCRIPT", "FLUSH")
	remote(t, l, "k", 1)
	require.Greater(t, sent(), few)
	require.Equal(t, few, least())
}

// A limit that is made after Ping decides in one round trip, also far away: its script is there.
func TestPingLoadsScriptsOfLaterLimits(t *testing.T) {
	virtually(t, redistest.Start(t), func(t *testing.T, c *redis.Client, wire *redistest.Wire) {
		const away = 96 * time.Millisecond
		wire.Set(redistest.Fault{Delay: away})
		store := newStore(t, c, distributed.WithTimeout(2*time.Second), distributed.WithInstances(1))
		require.NoError(t, store.Ping(ctx))
		once := func(name string, l algo.Limiter) {
			began := time.Now()
			remote(t, l, "k", 1)
			require.Equal(t, away, time.Since(began), name)
		}
		for name, make := range makers(store) {
			l := must[*distributed.Limiter](t)(make(name, algo.PerHour(10)))
			once(name, l)
			ban, err := distributed.NewBan(l, algo.Per(5, time.Hour), time.Minute, time.Hour)
			require.NoError(t, err)
			once(name+" with bans", ban)
		}
	})
}
