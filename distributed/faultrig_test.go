package distributed_test

import (
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// The limit, the instances that share it, and their timing.
const (
	faultBurst, faultRate = 20, 50
	faultInstances        = 2
	probeEvery            = 100 * time.Millisecond
)

var faultKeys = [...]string{"a", "b"}

func redisKeyOf(key string) string { return "sluice:{" + key + "}:fault" }

// rig is a server behind a proxy, and the instances that use it.
type rig struct {
	server   *redistest.Server
	proxy    *redistest.Proxy
	timeout  time.Duration
	limiters []*distributed.Limiter
	meters   []*meter
}

func newRig(t *testing.T, timeout time.Duration) *rig {
	r := &rig{server: redistest.Start(t), timeout: timeout}
	r.proxy = redistest.StartProxy(t, r.server)
	for range faultInstances {
		m := &meter{settle: timeout}
		c := viaProxy(t, r.proxy)
		c.AddHook(m)
		store := newStore(t, c, distributed.WithTimeout(timeout), distributed.WithProbeInterval(probeEvery),
			distributed.WithInstances(faultInstances), distributed.WithHook(m.event))
		l := must[*distributed.Limiter](t)(store.TokenBucket("fault", algo.PerSecond(faultRate), algo.Burst(faultBurst)))
		r.limiters, r.meters = append(r.limiters, l), append(r.meters, m)
	}
	return r
}

// shift moves the instants in all keys, which may not exist yet, by d, and
// with them when they expire.
func (r *rig) shift(d time.Duration) {
	const script = `local clock = redis.call('TIME')
		local now = clock[1] * 1000000 + clock[2]
		local tat, mark = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)(%d%d%d)')
		tat = (tonumber(tat) or now) + ARGV[1]
		if tat <= now then
			return redis.call('DEL', KEYS[1])
		end
		local ms = string.format('%.0f', math.ceil((tat - now) / 1000))
		return redis.call('SET', KEYS[1], string.format('%.0f', tat) .. (mark or '000'), 'PX', ms)`
	for _, key := range faultKeys {
		r.server.Do("EVAL", script, 1, redisKeyOf(key), d.Microseconds())
	}
}

// outcome has the results of callers and meters.
type outcome struct {
	decisions, fallbacks, failed int
	late                         int // decisions that took 5 ms more than the deadline
	opened, keyFaults            int // since the fault began
	calls                        int // that left the clients while the breaker was open
	intervals                    float64
	p95, worst                   time.Duration
	back                         time.Duration // from the end of the fault until Redis decides for all
	peak, bound                  float64       // of a key: see overshoot
	meters                       []*meter
}

const faultLasts = 350 * time.Millisecond

// run takes a caller for each instance and key through the fault.
func (r *rig) run(t *testing.T, row faultRow, at position) *outcome {
	if at == atStart {
		row.begin(t, r)
	} else {
		r.whole(t)
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	logs := make([][]sample, faultInstances*len(faultKeys))
	for i := range logs {
		group.Go(func() { logs[i] = keepAsking(r.limiters[i%faultInstances], faultKeys[i/faultInstances], stop) })
	}
	if at == inRecovery {
		r.proxy.Set(redistest.Fault{Refuse: true})
		r.until(t, distributed.StateOpen)
		time.Sleep(2 * probeEvery)
		r.proxy.Set(redistest.Fault{})
		r.until(t, distributed.StateRamping, distributed.StateClosed)
	}
	if at != atStart {
		r.each((*meter).mark)
		row.begin(t, r)
	}
	time.Sleep(faultLasts)
	r.each((*meter).freeze)
	row.over(t, r)
	mended := time.Now()
	r.whole(t)
	out := &outcome{back: time.Since(mended), meters: r.meters}
	close(stop)
	group.Wait()
	out.sum(logs, r, row.losses[at])
	r.requireTTL(t)
	return out
}

func (r *rig) each(f func(*meter)) {
	for _, m := range r.meters {
		f(m)
	}
}

// whole waits until Redis decides for every instance and key, and no breaker
// is open.
func (r *rig) whole(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		for i, l := range r.limiters {
			for _, key := range faultKeys {
				if acquire(t, l, key, 0).Source != algo.SourceRemote || r.meters[i].now() != distributed.StateClosed {
					return false
				}
			}
		}
		return true
	}, 20*time.Second, time.Millisecond)
}

// until waits until every breaker has reached one of the states.
func (r *rig) until(t *testing.T, states ...distributed.State) {
	t.Helper()
	for _, m := range r.meters {
		require.Eventually(t, func() bool { return slices.Contains(states, m.now()) }, 20*time.Second, time.Millisecond)
	}
}

// requireTTL is M3: no key outlives the time in which its bucket fills by more
// than a second.
func (r *rig) requireTTL(t *testing.T) {
	t.Helper()
	const most = 1000*faultBurst/faultRate + 1000
	for _, key := range r.server.Do("KEYS", "*").([]any) {
		ttl := r.server.Do("PTTL", key).(int64)
		require.NotEqual(t, int64(-1), ttl, "key %q has no TTL", key)
		require.LessOrEqual(t, ttl, int64(most), "key %q", key)
	}
}

// sample is one decision.
type sample struct {
	key             string
	asked, answered time.Time
	allowed         bool
	fallback        bool
	failed          bool
}

func keepAsking(l *distributed.Limiter, key string, stop <-chan struct{}) (log []sample) {
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return log
		case <-tick.C:
		}
		asked := time.Now()
		lease, err := l.Acquire(ctx, key, 1)
		log = append(log, sample{key, asked, time.Now(), lease.Allowed, lease.Source == algo.SourceFallback, err != nil})
	}
}

func (o *outcome) sum(logs [][]sample, r *rig, losses int) {
	var took []time.Duration
	admitted := map[string][]sample{}
	for _, s := range slices.Concat(logs...) {
		o.decisions++
		d := s.answered.Sub(s.asked)
		took = append(took, d)
		if d > r.timeout+5*time.Millisecond {
			o.late++
		}
		if s.fallback {
			o.fallbacks++
		}
		if s.failed {
			o.failed++
		}
		if s.allowed {
			admitted[s.key] = append(admitted[s.key], s)
		}
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		o.p95, o.worst = took[n*95/100], took[n-1]
	}
	const part = faultBurst / faultInstances // of each instance, while Redis is away
	o.bound = faultBurst*float64(1+losses) + faultInstances*part
	for _, s := range admitted {
		o.peak = max(o.peak, overshoot(s, 2*faultRate))
	}
	for _, m := range r.meters {
		opened, keyFaults := m.counts()
		o.opened += opened
		o.keyFaults += keyFaults
		o.calls += m.calls
		o.intervals += m.intervals()
	}
}

// overshoot is the most that was admitted in any window beyond rate times its
// length: at most the sum of the bursts. A window lasts from
// the first question in it to the last answer.
func overshoot(s []sample, rate float64) (peak float64) {
	slices.SortFunc(s, func(a, b sample) int { return a.asked.Compare(b.asked) })
	for i := range s {
		last := s[i].answered
		for j := i; j < len(s); j++ {
			if s[j].answered.After(last) {
				last = s[j].answered
			}
			peak = max(peak, float64(j-i+1)-rate*last.Sub(s[i].asked).Seconds())
		}
	}
	return math.Ceil(peak)
}
