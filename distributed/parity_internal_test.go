package distributed

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/cases"
	"github.com/sluice-go/sluice/internal/redistest"
)

// model is what the keys of a server should hold by bucket.lua.
type model struct {
	tat     map[string]int64
	blocked map[string]int64
}

// step is one operation and what it was asked with.
type step struct {
	key string
	g   *gcra
	n   int64
	a   args
}

// expect runs one step on the model and returns the reply that is due.
func (m *model) expect(s step, now int64) (tat, over, flag int64) {
	tat = m.tat[s.key]
	if end, ok := m.blocked[s.key]; ok && end > now {
		tat, flag = end, flagBlocked
	} else if ok {
		delete(m.blocked, s.key)
		tat = 0
	}
	if flag == flagBlocked && s.a[0] < opReset {
		return tat, tat - now + s.a[2], flag
	}
	switch s.a[0] {
	case opAcquire:
		m.tat[s.key], over = s.g.decide(tat, now, s.n)
	case opRefund:
		given := min(s.a[1], s.a[2]-max(now-s.a[3], 0), tat-now)
		m.tat[s.key] = tat - max(given, 0)
	case opOwe:
		m.tat[s.key] = min(max(tat, now)+s.a[3], now+s.g.depth+s.g.wait)
	case opReset:
		delete(m.blocked, s.key)
		delete(m.tat, s.key)
		return tat, 0, flag
	case opBlock:
		m.blocked[s.key] = max(tat, now+s.a[1])
		return m.blocked[s.key], 0, flag
	}
	return m.tat[s.key], over, flag
}

func randomStep(t *testing.T, rnd *rand.Rand) step {
	rates := []algo.Rate{
		algo.PerSecond(1_000_000), algo.PerSecond(70_000), algo.PerSecond(7),
		algo.PerMinute(100), algo.PerDay(5), algo.Per(1, 300*24*time.Hour),
	}
	g, err := newGCRA(rates[rnd.IntN(len(rates))], 1+rnd.Int64N(30), time.Duration(rnd.Int64N(3))*time.Second)
	if err != nil { // the burst takes too long to fill
		g, err = newGCRA(algo.PerSecond(10), 5, 0)
	}
	require.NoError(t, err)
	s := step{key: "k" + strconv.Itoa(rnd.IntN(40)), g: g, n: rnd.Int64N(6)}
	switch rnd.IntN(16) {
	case 0:
		s.a = g.owe(algo.Handle{}, s.n)
	case 1:
		s.a = args{opReset}
	case 2:
		s.a = args{opBlock, 1 + rnd.Int64N(5000)}
	case 3, 4, 5:
		s.a = args{opRefund, s.n * g.emission, (s.n + 1) * g.emission, time.Now().UnixMicro() - rnd.Int64N(100)}
	default:
		if s.n > g.most {
			s.n = 0
		}
		s.a = g.acquire(s.n)
	}
	return s
}

// L2: the script and decide agree to the bit, on every operation, whatever the
// limits, the order and the age of the keys.
func TestParityOfScriptAndDecide(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	rnd := rand.New(rand.NewPCG(1, 2))
	m := &model{map[string]int64{}, map[string]int64{}}
	const batch = 50
	steps := 0
	for steps < cases.Count(20_000, 200_000) {
		var batched []step
		var asked []*entry
		for range batch {
			s := randomStep(t, rnd)
			batched = append(batched, s)
			asked = append(asked, ask(bucketScript, s.key, s.a))
		}
		cmds := pack(t.Context(), asked, true)
		send(t.Context(), client, cmds)
		reply, err := cmds[0].Result()
		require.NoError(t, err)
		now := reply[0]
		for i, s := range batched {
			was := m.tat[s.key]
			tat, over, flag := m.expect(s, now)
			got := reply[1+3*i:][:3]
			// A TAT in the past means nothing; the key may have expired.
			require.Equal(t, []int64{max(tat, now), over, flag}, []int64{max(got[0], now), got[1], got[2]},
				"step %d: %v of %+v on %d at %d", steps+i, s.a, *s.g, was, now)
		}
		steps += batch
		if rnd.IntN(20) == 0 {
			m.disturb(t, client, rnd, now)
		}
	}
	t.Logf("L2: %d operations agree", steps)
	requireEveryKeyExpires(t, client)
}

// disturb puts into a key what no limit has written: a TAT from a clock that
// was ahead, and what is no number at all, which counts as nothing.
func (m *model) disturb(t *testing.T, c *redis.Client, rnd *rand.Rand, now int64) {
	key := "k" + strconv.Itoa(rnd.IntN(40))
	delete(m.blocked, key)
	values := []string{"nan", "-nan", "", "abc", "{}", "-inf"}
	value := values[rnd.IntN(len(values))]
	m.tat[key] = 0
	if rnd.IntN(2) == 0 {
		m.tat[key] = now + rnd.Int64N(int64(time.Hour/time.Microsecond))
		value = strconv.FormatInt(m.tat[key], 10)
	}
	require.NoError(t, c.Set(t.Context(), key, value, time.Hour).Err())
}

func requireEveryKeyExpires(t *testing.T, c *redis.Client) {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	for _, k := range keys {
		ttl, err := c.PTTL(t.Context(), k).Result()
		require.NoError(t, err)
		require.NotEqual(t, time.Duration(-1), ttl, "key %q has no TTL", k)
	}
}

// A TAT far ahead, as a clock that stepped back leaves it, is cut to one
// burst at the first look, denied or not, and the key heals.
func TestClockThatSteppedBackStarvesForOneBurstAtMost(t *testing.T) {
	client := redistest.Start(t).Client()
	g, err := newGCRA(algo.PerSecond(100), 5, 0)
	require.NoError(t, err)
	ahead := time.Now().Add(time.Minute).UnixMicro()
	require.NoError(t, client.Set(t.Context(), "k", ahead, time.Hour).Err())
	run := func() (now, tat, over int64) {
		cmds := pack(t.Context(), []*entry{ask(bucketScript, "k", g.acquire(1))}, true)
		send(t.Context(), client, cmds)
		reply, err := cmds[0].Result()
		require.NoError(t, err)
		return reply[0], reply[1], reply[2]
	}
	now, tat, over := run()
	require.Positive(t, over, "denied")
	require.Equal(t, now+g.depth, tat)
	text, err := client.Get(t.Context(), "k").Result()
	require.NoError(t, err)
	require.Equal(t, strconv.FormatInt(tat, 10), text, "the cut TAT is kept, in plain digits")
	require.Eventually(t, func() bool { _, _, over := run(); return over <= 0 },
		5*time.Second, time.Millisecond)
}

// F4: a key of another type is answered as such, and the others in its batch
// are decided.
func TestKeyOfAnotherTypeInABatch(t *testing.T) {
	client := redistest.Start(t).Client()
	require.NoError(t, client.HSet(t.Context(), "bad", "field", "value").Err())
	second := time.Second.Microseconds()
	for _, c := range []struct {
		script *script
		a      args
	}{
		{bucketScript, args{opAcquire, second, 0, second}},
		{fixedScript, args{opAcquire, second, 5, 1}},
		{slidingScript, args{opAcquire, second, 5, 1}},
		{heldScript, args{opAcquire, second, 5, 1, 7}},
	} {
		good := c.script.name
		cmds := pack(t.Context(), []*entry{ask(c.script, "bad", c.a), ask(c.script, good, c.a)}, true)
		require.Len(t, cmds, 1)
		send(t.Context(), client, cmds)
		reply, err := cmds[0].Result()
		require.NoError(t, err, c.script.name)
		n := c.script.replies
		require.EqualValues(t, flagType, reply[n], c.script.name)
		require.EqualValues(t, flagFine, reply[2*n], c.script.name)
		require.EqualValues(t, 1, client.Exists(t.Context(), good).Val(), c.script.name)
	}
}

func TestKeysAreInjective(t *testing.T) {
	seen := map[string]string{}
	for _, limit := range []string{"a", "b", ":", "a:b", "{", "}", "a}:b", "~x", ":instances", ":probe"} {
		for _, key := range []string{
			"", "a", "b", ":a", "a:", "{a}", "a}", "}a{", "%7B", "{", "%", "~", "\x00", "\n", " ", "é", "\xff",
			fmt.Sprintf("%300d", 1), fmt.Sprintf("%300d", 2), "x}:a", "}:a",
		} {
			k := redisKey("p", limit, key)
			other, dup := seen[k]
			require.False(t, dup, "%q/%q and %s share %q", limit, key, other, k)
			seen[k] = fmt.Sprintf("%q/%q", limit, key)
			require.NotContains(t, tagOf(k), "{")
			require.Equal(t, slot(k), slot("{"+tagOf(k)+"}"))
			if key != "" {
				require.Equal(t, slot(k), slot(redisKey("p", "other", key)), "limits on one key share a slot")
			}
		}
	}
	require.NotContains(t, seen, registryKey("p"))
	require.NotContains(t, seen, probeKey(redisKey("p", "a", "b")))
}

// FuzzKey: no two pairs of limit and key share a Redis key, and no byte of a
// key picks the slot.
func FuzzKey(f *testing.F) {
	f.Add("a", "b", "a", "{b}")
	f.Add("a:b", "c", "a", "b:c")
	f.Fuzz(func(t *testing.T, limit1, key1, limit2, key2 string) {
		if limit1 == "" || limit2 == "" {
			return
		}
		a, b := redisKey("p", limit1, key1), redisKey("p", limit2, key2)
		require.Equal(t, limit1 == limit2 && key1 == key2, a == b, "%q %q", a, b)
		for _, k := range []string{a, b} {
			require.Equal(t, 1, countByte(k, '{'))
			require.Equal(t, 1, countByte(k, '}'))
			require.LessOrEqual(t, len(k), 2*longestTag+8)
			for i := range len(k) {
				require.GreaterOrEqual(t, k[i], byte(0x21))
			}
		}
	})
}

func countByte(s string, c byte) (n int) {
	for i := range len(s) {
		if s[i] == c {
			n++
		}
	}
	return n
}

func TestSlotIsTheServersOwn(t *testing.T) {
	server := redistest.Start(t, "--cluster-enabled", "yes")
	for _, k := range []string{"a", "{user1000}.following", "foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}",
		redisKey("sluice", "per-user", "alice"), redisKey("sluice", "total", "")} {
		require.Equal(t, server.Do("CLUSTER", "KEYSLOT", k), int64(slot(k)), "%q", k)
	}
}

// An emission is never rounded so that the limit is faster than asked.
func TestEmission(t *testing.T) {
	for _, tc := range []struct {
		rate algo.Rate
		us   int64
	}{
		{algo.PerSecond(1), 1_000_000},
		{algo.PerSecond(3), 333_334},
		{algo.PerSecond(1_000_000), 1},
		{algo.PerSecond(999_999), 2},
		{algo.PerDay(5), 17_280_000_000},
		{algo.Per(1, time.Microsecond), 1},
	} {
		require.NoError(t, validRate(tc.rate))
		require.Equal(t, tc.us, emission(tc.rate), "%v", tc.rate)
	}
	for _, bad := range []algo.Rate{
		{Count: 0, Period: time.Second}, {Count: -1, Period: time.Second}, {Count: 1}, {Count: 1, Period: -1},
		{Count: 1_000_001, Period: time.Second}, {Count: 1 << 62, Period: time.Second}, {Count: 1, Period: 999},
		{Count: 1, Period: 1 << 62},
	} {
		require.Error(t, validRate(bad), "%v", bad)
	}
}
