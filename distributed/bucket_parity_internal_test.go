package distributed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func perMicros(count int64, period time.Duration) decide.Rate {
	return decide.Rate{Count: count, Period: period, Resolution: decide.Microseconds}
}

// randomGCRA returns one of many limits, fast and slow.
func randomGCRA(rnd *rand.Rand) *decide.GCRA {
	rates := []decide.Rate{
		perMicros(1_000_000, time.Second), perMicros(70_000, time.Second), perMicros(1000, time.Second),
		perMicros(7, time.Second), perMicros(100, time.Minute), perMicros(5, 24*time.Hour), perMicros(1, 300*24*time.Hour),
	}
	g, err := decide.NewGCRA(rates[rnd.IntN(len(rates))], 1+rnd.Int64N(30), time.Duration(rnd.Int64N(3))*time.Second)
	if err != nil { // the burst takes too long to fill
		g, _ = decide.NewGCRA(perMicros(10, time.Second), 5, 0)
	}
	return g
}

// bucketModel is the buckets as the script should keep them, each in all states
// that its replies allow, and charges that can be refunded.
type bucketModel struct {
	keys    map[string][]bucketOracle
	charges map[string][]markedCharge
	of      map[string]*decide.GCRA // the usual limit of a key
}

type markedCharge struct {
	decide.Charge
	mark int64
}

func newBucketModel(rnd *rand.Rand, n int) (*bucketModel, []string) {
	m := &bucketModel{map[string][]bucketOracle{}, map[string][]markedCharge{}, map[string]*decide.GCRA{}}
	names := make([]string, n)
	for i := range names {
		names[i] = "k" + strconv.Itoa(i)
		m.keys[names[i]] = make([]bucketOracle, 1)
		m.of[names[i]] = randomGCRA(rnd)
	}
	return m, names
}

// step makes a random operation on key.
func (m *bucketModel) step(rnd *rand.Rand, key string) bucketStep {
	s := bucketStep{gcra: m.of[key], n: rnd.Int64N(6)}
	if rnd.IntN(40) == 0 {
		s.gcra = randomGCRA(rnd) // another limit with the same name
	}
	if n := len(m.charges[key]); n > 0 {
		c := m.charges[key][rnd.IntN(n)]
		s.charge, s.mark = c.Charge, c.mark
	}
	switch rnd.IntN(24) {
	case 0:
		s.op, s.n = opForce, s.n+1
	case 1:
		s.op = opReset
	case 2:
		s.op, s.long = opBan, 1+rnd.Int64N(5000)
	case 9:
		s.op, s.n = opGiveBack, s.n+1
	case 3, 4, 5, 6, 7, 8:
		if s.op = opRefund; s.charge.N == 0 {
			s.op = opReset
		}
		s.n = min(s.n, s.charge.N)
	default:
		s.n = min(s.n, s.gcra.Params().MaxCost)
	}
	return s
}

// expect keeps the states of the key in which its reply is right.
func (m *bucketModel) expect(t *testing.T, s bucketStep, key string, now int64, got []int64) {
	t.Helper()
	got[0] = max(got[0], now) // a TAT in the past means none; the key may have expired
	tat, account, flag := got[0], got[1], got[2]
	var right []bucketOracle
	for _, o := range m.keys[key] {
		for _, o := range o.at(now) {
			tat, account, flag := o.run(s, now)
			if slices.Equal([]int64{max(tat, now), account, flag}, got) && !slices.Contains(right, o) {
				right = append(right, o)
			}
		}
	}
	require.NotEmpty(t, right, "%v for %+v of %+v on %+v at %d", got, s, s.gcra.Params(), m.keys[key], now)
	m.keys[key] = right
	if s.op == opAcquire && flag&^remote.FlagMixed == flagAdmitted && s.n > 0 {
		next, v, _ := s.gcra.Answer(tat, now, s.n)
		c := markedCharge{s.gcra.Charge(next, now, s.n, v.Delay), account}
		m.charges[key] = append(m.charges[key], c)
		if len(m.charges[key]) > 6 {
			m.charges[key] = m.charges[key][1:]
		}
	}
}

func runScript(t *testing.T, c *redis.Client, reqs ...*remote.Request) []int64 {
	t.Helper()
	all := remote.NewRequest(reqs[0].Script, "", remote.Args{})
	all.Keys, all.Args, all.Reply = nil, nil, nil
	for _, r := range reqs {
		require.Same(t, all.Script, r.Script)
		all.Keys, all.Args, all.Reply = append(all.Keys, r.Keys...), append(all.Args, r.Args...), append(all.Reply, r.Reply...)
	}
	require.NoError(t, remote.New(remote.GoRedis(c), remote.Config{}, nil).Execute([]*remote.Request{all}))
	return append([]int64{all.Now}, all.Reply...)
}

// TestL2_BucketScriptAndDecide: the script and decide agree to the bit on every
// operation, whatever the limits, the order and the age of the keys. A refund
// gives back the same units as decide, by the account that the key keeps.
func TestL2_BucketScriptAndDecide(t *testing.T) {
	client := redistest.Start(t).Client()
	rnd := rand.New(rand.NewPCG(1, 2))
	m, names := newBucketModel(rnd, 40)
	const batch = 50
	refunded := 0
	total := max(cases.Count(5_000, 200_000), 500)
	for done := 0; done < total; done += batch {
		var steps []bucketStep
		var keys []string
		var reqs []*remote.Request
		for range batch {
			key := names[rnd.IntN(len(names))]
			s := m.step(rnd, key)
			steps, keys = append(steps, s), append(keys, key)
			reqs = append(reqs, remote.NewRequest(bucketScript, key, s.args()))
		}
		reply := runScript(t, client, reqs...)
		for i, s := range steps {
			before := m.keys[keys[i]][0].account
			m.expect(t, s, keys[i], reply[0], reply[1+3*i:][:3])
			if (s.op == opRefund || s.op == opGiveBack) && m.keys[keys[i]][0].account > before {
				refunded++
			}
		}
		if rnd.IntN(20) == 0 {
			m.disturb(t, client, rnd, names, reply[0])
		}
	}
	require.Positive(t, refunded)
	t.Logf("L2: %d operations agree, %d of them refunds that gave back", total, refunded)
	requireEveryKeyExpires(t, client)
}

// disturb puts into a key a TAT from a clock that was ahead.
func (m *bucketModel) disturb(t *testing.T, c *redis.Client, rnd *rand.Rand, names []string, now int64) {
	key := names[rnd.IntN(len(names))]
	o := bucketOracle{aliveUntil: now + time.Hour.Microseconds(), mark: bucketOf(m.of[key]).mark()}
	o.tat = now + rnd.Int64N(int64(time.Hour/time.Microsecond))
	m.keys[key], m.charges[key] = []bucketOracle{o}, nil
	value := fmt.Sprintf("%d%03d", o.tat, o.mark)
	require.NoError(t, c.Set(t.Context(), key, value, time.Hour).Err())
}

// TestL2_GroupsAndDecide: several buckets in one step are decided as decide
// decides one after another, and charged together or not at all.
func TestL2_GroupsAndDecide(t *testing.T) {
	client := redistest.Start(t).Client()
	rnd := rand.New(rand.NewPCG(5, 6))
	m, names := newBucketModel(rnd, 6)
	total, charged := cases.Count(2_000, 50_000), 0
	for range total {
		g := &group{op: opAcquireAll}
		if rnd.IntN(5) == 0 {
			g.op = opPeekAll
		}
		for range 1 + rnd.IntN(4) {
			p := groupPart{key: names[rnd.IntN(len(names))]}
			p.limit = bucketOf(m.of[p.key])
			p.N = rnd.Int64N(min(4, p.limit.maxCost()+1))
			g.parts = append(g.parts, p)
		}
		reply := runScript(t, client, g.request())
		now, all := reply[0], true
		tats := map[string]int64{}
		for i, p := range g.parts {
			o, b := &m.keys[p.key][0], p.limit.(*bucket)
			if _, known := tats[p.key]; !known {
				tats[p.key] = o.tat
			}
			before := tats[p.key]
			next, v, _ := b.gcra.Answer(before, now, p.N)
			if !v.Allowed {
				next = max(tats[p.key], now) + p.N*b.Emission
			}
			tats[p.key] = next
			all = all && v.Allowed
			got := reply[1+3*i:][:3]
			require.Equal(t, max(before, now), max(got[0], now))
			require.Equal(t, v.Allowed, got[2] == flagAdmitted)
		}
		if all && g.op == opAcquireAll {
			charged++
			for key, tat := range tats {
				m.keys[key][0].tat = tat
			}
		}
	}
	require.Positive(t, charged)
	t.Logf("L2: %d groups agree, %d of them charged", total, charged)
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

// A TAT far ahead, as a clock that stepped back leaves it, is clamped to one
// burst beyond the bucket at the first decision, denied or not, and the key
// heals.
func TestClockThatSteppedBackDeniesForAtMostOneBurst(t *testing.T) {
	client := redistest.Start(t).Client()
	g, err := decide.NewGCRA(perMicros(100, time.Second), 5, 0)
	require.NoError(t, err)
	b := bucketOf(g)
	ahead := time.Now().Add(time.Minute).UnixMicro()
	require.NoError(t, client.Set(t.Context(), "k", fmt.Sprintf("%d%03d", ahead, b.mark()), time.Hour).Err())
	reply := runScript(t, client, remote.NewRequest(bucketScript, "k", b.acquireArgs("", 1)))
	require.EqualValues(t, flagDenied, reply[3])
	require.Equal(t, reply[0]+2*b.Depth, reply[1])
	text, err := client.Get(t.Context(), "k").Result()
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%d%03d:1:1", reply[1], b.mark()), text, "the clamped TAT is kept, in plain digits, and earlier charges are void")
	began := time.Now()
	require.Eventually(t, func() bool {
		return runScript(t, client, remote.NewRequest(bucketScript, "k", b.acquireArgs("", 1)))[3] == flagAdmitted
	}, 5*time.Second, time.Millisecond)
	require.GreaterOrEqual(t, time.Since(began), micros(b.Depth), "not before the burst is paid off")
}

// TestF4_KeyOfAnotherTypeInABatch: a key of another type is answered as such,
// and the others in its batch are decided.
func TestF4_KeyOfAnotherTypeInABatch(t *testing.T) {
	client := redistest.Start(t).Client()
	require.NoError(t, client.HSet(t.Context(), "bad", "field", "value").Err())
	second := time.Second.Microseconds()
	for _, c := range []struct {
		script *remote.Script
		a      remote.Args
	}{
		{bucketScript, remote.Args{opAcquire, second, 0, second}},
		{fixedWindowScript, remote.Args{opAcquire, second, 5, 1}},
		{slidingWindowScript, remote.Args{opAcquire, second, 5, 1}},
		{logScript, remote.Args{opAcquire, second, 5, 1, 7, 0, markOf(second, 5)}},
		{inFlightScript, remote.Args{opAcquire, second, 5, 1, 7, 0, markOf(second, 5)}},
	} {
		good := c.script.Name
		reply := runScript(t, client, remote.NewRequest(c.script, "bad", c.a), remote.NewRequest(c.script, good, c.a))
		n := c.script.Replies
		require.EqualValues(t, flagWrongType, reply[n], c.script.Name)
		require.EqualValues(t, flagAdmitted, reply[2*n], c.script.Name)
		require.EqualValues(t, 1, client.Exists(t.Context(), good).Val(), c.script.Name)
	}
}
