package distributed_test

import (
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// The instances that share a limit, and their timing.
const (
	faultInstances = 2
	probeEvery     = 100 * time.Millisecond
	faultLasts     = 350 * time.Millisecond
)

func redisKeyOf(key string) string { return distributed.RedisKey("sluice", "fault", key) }

// rig is a server behind a proxy, or a cluster, and the instances that use it.
type rig struct {
	cell
	server   *redistest.Server
	proxy    *redistest.Proxy
	cluster  *redistest.Cluster
	keys     []string
	limiters []*distributed.Limiter // of this version of the limit
	meters   []*gauge               // of all versions
	spenders []*spender             // one of each instance
	group    sync.WaitGroup         // of the callers
	left     chan struct{}          // closed when the other version leaves
	mu       sync.Mutex
	log      []sample
}

func newRig(t *testing.T, c cell) *rig {
	r := &rig{cell: c, keys: []string{"a", "b"}}
	if c.row.cluster {
		r.cluster = redistest.StartCluster(t)
		r.cluster.AddReplicas()
		client := clusterClient(t, r.cluster)
		for i := range r.keys {
			r.keys[i] = keysOf(t, client, r.cluster.Nodes[i], "fault", 1)[0]
		}
	} else {
		r.server = redistest.Start(t)
		r.proxy = redistest.StartProxy(t, r.server)
	}
	for range max(c.row.instances, faultInstances) {
		r.limiters = append(r.limiters, r.join(t, c.algorithm, c.row.limit))
	}
	return r
}

// join starts an instance.
func (r *rig) join(t *testing.T, algorithm string, q quota) *distributed.Limiter {
	timeout := r.row.timeout()
	m := &gauge{settle: timeout, frozen: r.row.cluster || r.row.instances > 0} // nodes and heartbeats have calls of their own
	var c redis.UniversalClient
	if r.cluster != nil {
		c = clusterClient(t, r.cluster)
	} else {
		c = viaProxy(t, r.proxy)
	}
	if len(r.meters)%2 == 0 || r.cluster != nil {
		c.AddHook(m) // a client without hooks has connections of the store beside its own
	}
	opts := []distributed.Option{distributed.WithTimeout(timeout), distributed.ProbeEvery(probeEvery), distributed.WithHook(m.event)}
	if r.row.instances == 0 {
		opts = append(opts, distributed.WithInstances(faultInstances))
	}
	if r.row.blocks > 0 {
		opts = append(opts, distributed.WithBlocks(r.row.blocks))
	}
	r.meters = append(r.meters, m)
	store := newStore(t, c, opts...)
	r.spenders = append(r.spenders, newSpender(t, store))
	return must[*distributed.Limiter](t)(makers(store)[algorithm]("fault", algo.Per(q.units, q.period)))
}

// intrude starts an instance with the other version of the limit, and its callers.
func (r *rig) intrude(t *testing.T) {
	r.left = make(chan struct{})
	r.call(r.join(t, r.others(), r.row.other), r.left)
}

func (r *rig) dismiss(*testing.T) { close(r.left) }

func (r *rig) killMaster(*testing.T) { r.cluster.Nodes[0].Kill() }

func (r *rig) awaitReplica(t *testing.T) {
	require.Eventually(t, func() bool { return r.cluster.Promoted(0) }, 20*time.Second, 10*time.Millisecond)
}

// openSlot begins to move the slot of the first key from the first node to the second.
func (r *rig) openSlot(*testing.T) {
	from, to := r.cluster.Nodes[0], r.cluster.Nodes[1]
	slot := from.Do("CLUSTER", "KEYSLOT", redisKeyOf(r.keys[0]))
	to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.Do("CLUSTER", "MYID"))
	from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.Do("CLUSTER", "MYID"))
}

// moveSlot moves the key, if it is still there, and then the slot.
func (r *rig) moveSlot(t *testing.T) {
	from, to := r.cluster.Nodes[0], r.cluster.Nodes[1]
	host, port, err := net.SplitHostPort(to.Addr())
	require.NoError(t, err)
	from.Do("MIGRATE", host, port, redisKeyOf(r.keys[0]), 0, 5000)
	for _, node := range []*redistest.Server{to, from} {
		node.Do("CLUSTER", "SETSLOT", from.Do("CLUSTER", "KEYSLOT", redisKeyOf(r.keys[0])), "NODE", to.Do("CLUSTER", "MYID"))
	}
}

// shift moves the instants in all keys by d, and with them when they expire. Periods divide d.
func (r *rig) shift(d time.Duration) {
	const script = `local v = redis.call('GET', KEYS[1])
		local ttl, by = redis.call('PTTL', KEYS[1]) + ARGV[1] / 1000, tonumber(ARGV[1])
		if not v or ttl <= 0 then
			return redis.call('DEL', KEYS[1])
		end
		local kind, at, rest = string.match(v, '^([fs])(%d+)(:.*)$')
		if not kind then
			kind, at, rest = '', string.match(v, '^(%d+)(%d%d%d.*)$')
		elseif kind == 's' then
			by = by / string.match(rest, '^:%d+:%d+:(%d+)')
		end
		return redis.call('SET', KEYS[1], kind .. string.format('%.0f', at + by) .. rest, 'PX', string.format('%.0f', ttl))`
	for _, key := range r.keys {
		r.server.Do("EVAL", script, 1, redisKeyOf(key), d.Microseconds())
	}
}

// run takes a caller for each instance and key through the fault.
func (r *rig) run(t *testing.T) *outcome {
	rnd := rand.New(rand.NewPCG(r.seed, uint64(r.at)))
	if r.at == atStart {
		r.row.begin(r, t)
	} else {
		r.whole(t)
	}
	stop := make(chan struct{})
	for i, l := range r.limiters {
		r.call(l, stop)
		spender := r.spenders[i]
		r.group.Go(func() { spender.run(stop) })
	}
	if r.at == inRecovery {
		r.proxy.Set(redistest.Fault{Refuse: true})
		r.until(t, distributed.PhaseOpen)
		time.Sleep(2 * probeEvery)
		r.proxy.Set(redistest.Fault{})
		r.until(t, distributed.PhaseRamping, distributed.PhaseClosed)
	}
	if r.at != atStart {
		if r.at == inMiddle {
			time.Sleep(time.Duration(rnd.Int64N(int64(faultLimit.period))))
		}
		r.each((*gauge).mark)
		r.row.begin(r, t)
	}
	time.Sleep(max(r.row.lasts, faultLasts) + time.Duration(rnd.Int64N(int64(faultLimit.period))))
	r.each((*gauge).freeze)
	r.row.over(r, t)
	mended := time.Now()
	r.whole(t)
	back := time.Since(mended)
	time.Sleep(faultLimit.period) // for a second burst, if Redis admits one
	close(stop)
	r.group.Wait()
	r.requireTTL(t)
	o := r.outcome(back)
	o.unitsLost, o.slotsLost = r.lost(t)
	return o
}

func (r *rig) each(f func(*gauge)) {
	for _, m := range r.meters {
		f(m)
	}
}

// whole waits until Redis decides for every instance and key, and no breaker
// is open.
func (r *rig) whole(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, l := range r.limiters {
			for _, key := range r.keys {
				if acquire(t, l, key, 0).Source != algo.SourceRemote || distributed.StoreOf(l).Stats().Phase != distributed.PhaseClosed {
					return false
				}
			}
		}
		return true
	}, 20*time.Second, time.Millisecond)
}

// until waits until every breaker has reached one of the states.
func (r *rig) until(t *testing.T, states ...distributed.Phase) {
	t.Helper()
	for _, m := range r.meters {
		require.Eventually(t, func() bool { return slices.Contains(states, m.now()) }, 20*time.Second, time.Millisecond)
	}
}

// requireTTL is M3: no key outlives its effect, at most two periods, by more than a second.
func (r *rig) requireTTL(t *testing.T) {
	t.Helper()
	if r.server == nil {
		return
	}
	requireTTL(t, r.server)
	for _, key := range r.keys {
		ttl := r.server.Do("PTTL", redisKeyOf(key)).(int64)
		require.LessOrEqual(t, ttl, (2*r.longest() + time.Second).Milliseconds(), "key %q", key)
	}
}

// call starts a caller for each key. Where there are blocks, all callers pause every
// other 400 ms: near the limit no blocks are taken.
func (r *rig) call(l *distributed.Limiter, stop <-chan struct{}) {
	pace := 3 * time.Millisecond * time.Duration(len(r.limiters)) / faultInstances
	for _, key := range r.keys {
		r.group.Go(func() {
			var log []sample
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					r.mu.Lock()
					defer r.mu.Unlock()
					r.log = append(r.log, log...)
					return
				case <-tick.C:
				}
				if r.row.blocks > 0 && time.Now().UnixMilli()/400%2 == 1 {
					continue
				}
				asked := time.Now()
				lease, err := l.Acquire(ctx, key, 1)
				log = append(log, sample{key, asked, time.Now(), lease.Allowed, lease.Source, err != nil})
			}
		})
	}
}
