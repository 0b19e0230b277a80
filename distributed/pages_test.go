package distributed_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/distributed"
)

// The rights in the guide are the commands of the scripts, no more and no fewer.
func TestDocumentedRights(t *testing.T) {
	base := []string{"+eval", "+evalsha"}
	for _, w := range leastRights(t)[5:] {
		if w := w.(string); w[0] == '+' && !slices.Contains(base, w) {
			base = append(base, w)
		}
	}
	slices.Sort(base)
	require.Equal(t, slices.Sorted(slices.Values(append(commands(t), "+eval", "+evalsha"))), base)
	page := string(must[[]byte](t)(os.ReadFile("../docs/guides/redis.md")))
	more := strings.Fields(regexp.MustCompile("Package `rules` also needs `([^`]*)`").FindStringSubmatch(page)[1])
	var rules []string
	for _, found := range regexp.MustCompile(`call\('([A-Z]+)'`).FindAllStringSubmatch(string(must[[]byte](t)(os.ReadFile(filepath.Join("rules", "sync.lua")))), -1) {
		if w := "+" + strings.ToLower(found[1]); !slices.Contains(base, w) && !slices.Contains(rules, w) {
			rules = append(rules, w)
		}
	}
	require.ElementsMatch(t, rules, more)
}

// The memory in Redis of what has no bound of its own is about what the pages state.
func TestStatedMemory(t *testing.T) {
	store, _ := onRedis(t, distributed.WithInstances(1))
	usage := func(key string) int64 { return must[int64](t)(store.Client().MemoryUsage(ctx, key).Result()) }
	about := func(stated, measured int64, of string) {
		t.Logf("%s: %d bytes, %d stated", of, measured, stated)
		require.Less(t, math.Abs(float64(measured-stated)), 0.4*float64(stated), of)
	}
	log := must[*distributed.Limiter](t)(store.SlidingLog("log", algo.PerHour(5000)))
	for range 1000 {
		require.True(t, remote(t, log, "k", 3).Allowed)
	}
	about(120, usage(distributed.RedisKey("sluice", "log", "k"))/1000, "an admission of a sliding log")
	credits := must[*distributed.Credits](t)(store.Credits("credits"))
	for i := range 500 {
		require.NoError(t, credits.TopUp(ctx, "k", fmt.Sprintf("invoice-%08d", i), 1000))
	}
	about(160, usage(distributed.RedisKey("sluice", "credits", "k"))/500, "a top-up")
	ban := must[*distributed.Ban](t)(distributed.NewBan(must[*distributed.Limiter](t)(store.TokenBucket("b", algo.PerHour(1))), algo.PerHour(1), time.Minute, time.Hour))
	for range 4 {
		remote(t, ban, "eve", 1)
	}
	require.Equal(t, algo.Banned, acquire(t, ban, "eve", 1).Reason)
	for _, key := range must[[]string](t)(store.Client().Keys(ctx, "*eve*").Result()) {
		if key != distributed.RedisKey("sluice", "b", "eve") {
			about(100, usage(key), "a record of bans")
		}
	}
}

// The ends of the ranges that the pages state are taken, and the next values are not.
func TestStatedRanges(t *testing.T) {
	for _, o := range []distributed.Option{
		distributed.WithTimeout(time.Millisecond), distributed.WithTimeout(time.Minute), distributed.WithDenyCache(1e7),
		distributed.WithService(strings.Repeat("s", 200)), distributed.WithBlocks(1), distributed.WithAssumedInstances(1),
	} {
		require.NoError(t, must[*distributed.Store](t)(distributed.New(nowhere(t), o)).Close())
	}
	for _, o := range []distributed.Option{
		distributed.WithTimeout(time.Millisecond - 1), distributed.WithTimeout(time.Minute + 1), distributed.WithDenyCache(1e7 + 1),
		distributed.WithService(strings.Repeat("s", 201)), distributed.WithAssumedInstances(0),
	} {
		_, err := distributed.New(nowhere(t), o)
		require.Error(t, err)
	}
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(1)))
	const longest = 365 * 24 * time.Hour
	require.NoError(t, l.Ban(ctx, "k", longest))
	require.Error(t, l.Ban(ctx, "k", longest+1))
	require.Error(t, l.Ban(ctx, "k", 0))
	_, err := guard.NewBan(algo.Unlimited(), algo.PerHour(1), time.Minute, longest+1)
	require.Error(t, err)
	const week = 7 * 24 * time.Hour
	for life, valid := range map[time.Duration]bool{time.Second: true, week: true, time.Second - 1: false, week + 1: false} {
		_, err := l.Reserve(ctx, life.String(), "id", 1, life)
		require.Equal(t, valid, err == nil, "%v: %v", life, err)
	}
	for _, err := range []error{
		second(store.InFlight("none", 0, time.Minute)), second(store.InFlight("many", 10_001, time.Minute)),
		second(store.InFlight("short", 1, time.Second-1)), second(store.InFlight("long", 1, time.Hour+1)),
		second(store.SlidingLog("log", algo.PerHour(10_001))), second(store.SlidingWindow("window", algo.PerDay(104_250))),
		second(store.TokenBucket("fast", algo.PerSecond(1_000_001))), second(store.TokenBucket(strings.Repeat("n", 201), algo.PerHour(1))),
		second(store.TokenBucket("slow", algo.Every(longest+24*time.Hour))),
	} {
		require.Error(t, err)
	}
	must[*distributed.Limiter](t)(store.InFlight("most", 10_000, time.Hour))
	must[*distributed.Limiter](t)(store.SlidingLog("most log", algo.PerHour(10_000)))
	must[*distributed.Limiter](t)(store.SlidingWindow("most window", algo.PerDay(104_249)))
	must[*distributed.Limiter](t)(store.TokenBucket("fastest", algo.PerSecond(1_000_000)))
	must[*distributed.Limiter](t)(store.TokenBucket("slowest", algo.Every(longest)))
}

// Several buckets take one round trip, so do several fixed windows; a bucket and a window two.
func TestStatedRoundTrips(t *testing.T) {
	store, server := onRedis(t, distributed.WithInstances(1), distributed.WithDenyCache(0))
	require.NoError(t, store.Ping(ctx))
	limit := func(text string) *distributed.Limiter {
		return must[*distributed.Limiter](t)(store.Limiter(text, must[algo.Spec](t)(algo.Parse(text))))
	}
	bucket, slow, day, hour := limit("100/s"), limit("1000/h"), limit("fixed-window 100/d"), limit("fixed-window 50/h")
	for _, tc := range []struct {
		a, b  *distributed.Limiter
		trips int
	}{{bucket, slow, 1}, {day, hour, 1}, {bucket, day, 2}} {
		both := func() {
			require.True(t, acquireAll(t, algo.Request{Limiter: tc.a, Key: "k", N: 1}, algo.Request{Limiter: tc.b, Key: "k", N: 1}).Allowed)
		}
		both() // scripts are sent
		server.Do("CONFIG", "RESETSTAT")
		both()
		require.Equal(t, tc.trips, evalCalls(server))
	}
}

// What a learned limit has learned is kept for a day.
func TestStatedLifeOfLearnedLimits(t *testing.T) {
	store, _ := onRedis(t, distributed.WithInstances(1))
	l := must[*distributed.Learned](t)(store.Learned("api", algo.PerSecond(100)))
	require.True(t, must[algo.Lease](t)(l.Acquire(ctx, "k", 1)).Allowed)
	for _, key := range must[[]string](t)(store.Client().Keys(ctx, "sluice:{k}*").Result()) {
		require.InDelta(t, 24*time.Hour, store.Client().PTTL(ctx, key).Val(), float64(time.Minute), key)
	}
}
