package distributed_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// faultRow is one fault: how Redis is broken and repaired, and the fleet that meets it, two
// instances with a fixed share each on one server if nothing else is said.
type faultRow struct {
	name        string
	effect      effect
	losses      [3]int // how often Redis loses its data, by position
	begin, over func(*rig, *testing.T)
	at          []position // every one if empty

	limit     quota         // of the key; faultLimit if zero
	other     quota         // of an instance with another version of the limit, if any
	alien     bool          // whose algorithm is another one
	cluster   bool          // of three masters with a replica each
	instances int           // that start together and count each other
	blocks    int64         // the excess of WithBlocks
	lasts     time.Duration // faultLasts if 0
}

// effect is the required effect of a fault on the breaker.
type effect uint8

const (
	breaks   effect = iota // it opens
	either                 // some calls fail, perhaps enough of them, or replies come too late
	oneKey                 // one key's decisions are local, and it stays closed
	answered               // Redis goes on deciding, and it stays closed
)

// timeout is long where every question has its answer: a busy machine alone
// must not make a reply late.
func (f faultRow) timeout() time.Duration {
	if f.effect == oneKey || f.effect == answered || f.instances > 0 {
		return time.Second
	}
	return 40 * time.Millisecond
}

// position is when the fault comes.
type position int

const (
	atStart    position = iota // before the first call
	inMiddle                   // while Redis decides
	inRecovery                 // as the breaker lets the first calls through, after another fault
)

func (p position) String() string { return [...]string{"start", "middle", "recovery"}[p] }

func byProxy(name string, e effect, f redistest.Fault) faultRow {
	return faultRow{name: name, effect: e, begin: sets(f), over: sets(redistest.Fault{})}
}

func sets(f redistest.Fault) func(*rig, *testing.T) {
	return func(r *rig, _ *testing.T) { r.proxy.Set(f) }
}

func byServer(name string, e effect, begin, over func(*redistest.Server), losses ...int) faultRow {
	row := faultRow{
		name: name, effect: e,
		begin: func(r *rig, _ *testing.T) { begin(r.server) },
		over:  func(r *rig, _ *testing.T) { over(r.server) },
	}
	copy(row.losses[:], losses)
	return row
}

// byConfig sets a parameter of the server, and puts it back.
func byConfig(name, parameter, bad, good string) faultRow {
	return byServer(name, breaks,
		func(s *redistest.Server) { s.Do("CONFIG", "SET", parameter, bad) },
		func(s *redistest.Server) { s.Do("CONFIG", "SET", parameter, good) })
}

// byClock is the effect of a step of the server's clock on the keys, and back: after a step
// forward, their instants lie further back. It clears their debt, so it counts as
// a loss of data.
func byClock(name string, step time.Duration, losses ...int) faultRow {
	row := faultRow{
		name: name, effect: answered,
		begin: func(r *rig, _ *testing.T) { r.shift(-step) },
		over:  func(r *rig, _ *testing.T) { r.shift(step) },
	}
	copy(row.losses[:], losses)
	return row
}

// byVersion is another service, or the last version of this one, that uses the name with
// other parameters.
func byVersion(name string, e effect, limit, other quota) faultRow {
	return faultRow{
		name: name, effect: e, limit: limit, other: other, alien: e == oneKey, begin: (*rig).intrude, over: (*rig).dismiss,
		lasts: time.Duration(limit.units) * 5 * time.Millisecond, // until the burst is spent
	}
}

// byStart is eight instances that start together, with or without blocks.
func byStart(name string, e effect, begin func(*rig, *testing.T)) []faultRow {
	row := faultRow{name: name, effect: e, at: []position{atStart}, instances: 8, lasts: 3 * time.Second, begin: begin, over: sets(redistest.Fault{})}
	blocks := row
	blocks.name, blocks.blocks = name+", blocks", 16
	if e == answered { // they have been counted after four seconds, and there is room for blocks
		blocks.blocks, blocks.limit, blocks.lasts = 160, quota{400, time.Second}, 6*time.Second
	}
	return []faultRow{row, blocks}
}

// inCluster is a fault of the first master, whose slots have the first key.
func inCluster(name string, e effect, losses int, begin, over func(*rig, *testing.T)) faultRow {
	return faultRow{name: name, effect: e, losses: [3]int{inMiddle: losses}, begin: begin, over: over, at: []position{inMiddle}, cluster: true}
}

func nothing(*redistest.Server) {}

var faultRows = slices.Concat([]faultRow{
	byProxy("refused", breaks, redistest.Fault{Refuse: true}),
	byProxy("reset", breaks, redistest.Fault{Reset: true}),
	byProxy("black-holed", breaks, redistest.Fault{BlackHole: true}),
	byProxy("jitter 10-70 ms", either, redistest.Fault{Delay: 10 * time.Millisecond, Jitter: 60 * time.Millisecond}),
	byProxy("12 ms away", either, redistest.Fault{Delay: 12 * time.Millisecond}),
	byProxy("25 ms away", either, redistest.Fault{Delay: 25 * time.Millisecond}),
	byProxy("60 ms away, beyond the timeout", either, redistest.Fault{Delay: 60 * time.Millisecond}),
	byProxy("sliced", answered, redistest.Fault{Slice: true}),
	byProxy("half-closed", breaks, redistest.Fault{Command: "evalsha", HalfClose: true}),
	byServer("paused (SIGSTOP)", breaks, (*redistest.Server).Pause, (*redistest.Server).Resume),
	byServer("killed -9", breaks, (*redistest.Server).Kill, (*redistest.Server).Restart, 0, 1, 1),
	byServer("FLUSHALL", answered, (*redistest.Server).Flush, nothing, 0, 1, 1),
	byServer("SCRIPT FLUSH", answered, func(s *redistest.Server) { s.Do("SCRIPT", "FLUSH") }, nothing),
	byConfig("OOM", "maxmemory", "1", "0"),
	byConfig("NOREPLICAS", "min-replicas-to-write", "1", "0"),
	byServer("READONLY", breaks,
		func(s *redistest.Server) { s.Do("REPLICAOF", "127.0.0.1", "1") },
		func(s *redistest.Server) { s.Do("REPLICAOF", "NO", "ONE") }),
	byProxy("LOADING (by proxy)", breaks, redistest.Fault{Error: "LOADING Redis is loading the dataset in memory"}),
	byProxy("MISCONF (by proxy)", breaks, redistest.Fault{Error: "MISCONF Redis is configured to save RDB snapshots"}),
	{
		name: "WRONGTYPE on one key", effect: oneKey, losses: [3]int{0, 1, 1},
		begin: func(r *rig, _ *testing.T) {
			r.server.Do("HSET", "other", "field", "value")
			r.server.Do("RENAME", "other", redisKeyOf(r.keys[0]))
		},
		over: func(r *rig, _ *testing.T) { r.server.Do("DEL", redisKeyOf(r.keys[0])) },
	},
	byVersion("burst 1000 and 10 on one name", answered, quota{1000, 20 * time.Second}, quota{10, 200 * time.Millisecond}),
	byVersion("rate 20 and 200 a second on one name", answered, quota{8, 400 * time.Millisecond}, quota{80, 400 * time.Millisecond}),
	byVersion("two algorithms on one name", oneKey, faultLimit, faultLimit),
	byClock("clock +12 s (by keys)", 12*time.Second, 0, 1, 1),
	byClock("clock -12 s (by keys)", -12*time.Second, 1, 1, 1),
	inCluster("cluster: master killed, replica promoted", breaks, 1, (*rig).killMaster, (*rig).awaitReplica),
	inCluster("cluster: slot migrates", answered, 0, (*rig).openSlot, (*rig).moveSlot),
},
	byStart("8 cold starts", answered, sets(redistest.Fault{})),
	byStart("8 cold starts, Redis is away", breaks, sets(redistest.Fault{Refuse: true})),
	byStart("8 cold starts, then Redis goes away", breaks, func(r *rig, t *testing.T) {
		for _, l := range r.limiters {
			require.Eventually(t, func() bool { return distributed.StoreOf(l).Ping(ctx) == nil }, 20*time.Second, time.Millisecond)
		}
		r.proxy.Set(redistest.Fault{Refuse: true})
	}),
)

// cell is a row with an algorithm at a position. The seed shifts the fault against the
// periods of the limit.
type cell struct {
	row       faultRow
	at        position
	algorithm string
	seed      uint64
}

var faultAlgorithms = []string{"token bucket", "fixed window", "sliding window"}

// cells are all of them with three seeds, and in an everyday run one of each row.
func cells() (all []cell) {
	for i, row := range faultRows {
		at := row.at
		if at == nil {
			at = []position{atStart, inMiddle, inRecovery}
		}
		if row.limit == (quota{}) {
			row.limit = faultLimit
		}
		if !cases.Long() {
			all = append(all, cell{row, at[i/3%len(at)], faultAlgorithms[i%3], 1})
			continue
		}
		for _, p := range at {
			for _, algorithm := range faultAlgorithms {
				for seed := range uint64(3) {
					all = append(all, cell{row, p, algorithm, seed})
				}
			}
		}
	}
	return all
}

// TestW3_M3_F1_F2_F3_F4_FaultTable drives a fleet through every fault, at
// the start, in the middle and during a recovery, and prints the decisions that
// its callers got. Decisions keep the deadline (F1) and none is an error; while
// the breaker is open there is at most one call in a probe interval (F2); Redis
// decides again soon after (F3); the fault of one key affects no other (F4); the
// admissions of all instances together keep the bound in every window (W3), and every key
// expires (M3).
//
// Latencies and the time to recover depend on the machine's load: they are
// printed, and asserted with a wide margin.
func TestW3_M3_F1_F2_F3_F4_FaultTable(t *testing.T) {
	cases.Slow(t)
	redis.SetLogger(silent{}) // go-redis logs every failed dial
	var table faultTable
	t.Run("rows", func(t *testing.T) {
		for _, c := range cells() {
			t.Run(fmt.Sprintf("%s/%v/%s/%d", c.row.name, c.at, c.algorithm, c.seed), func(t *testing.T) {
				t.Parallel()
				out := newRig(t, c).run(t)
				table.add(c, out)
				out.check(t, c)
			})
		}
	})
	for _, id := range []string{"W3", "F4"} {
		t.Logf("%s: %d faults, %d cells, %d above the bound", id, len(faultRows), table.cells, table.above)
	}
	t.Logf("\n%s", table.markdown())
}

func (o *outcome) check(t *testing.T, c cell) {
	const grace = 500 * time.Millisecond
	require.Positive(t, o.decisions)
	require.Zero(t, o.failed, "no failure of Redis is an error")
	require.Positive(t, o.share, "a limit under which nothing is admitted keeps every bound")
	require.LessOrEqual(t, o.share, 1., "W3")
	require.Less(t, o.denied, c.denial()+4*grace)
	require.Less(t, o.p95, c.row.timeout()+grace, "F1")
	require.Less(t, o.back, 2*(probeEvery+c.row.timeout())+8*grace, "F3")
	require.Zero(t, o.slotsLost)
	require.LessOrEqual(t, o.unitsLost, int64(2*max(c.row.instances, faultInstances)), "the commands on a connection that breaks")
	for _, m := range o.meters {
		require.LessOrEqual(t, float64(m.calls), m.intervals()+1, "F2")
	}
	require.Equal(t, c.row.other != quota{} && !c.row.alien, o.mixed > 0, "a difference is reported")
	require.Zero(t, o.early, "blocks before all others have counted an instance")
	if c.row.blocks > 0 && c.row.effect == answered && c.algorithm == "token bucket" {
		require.Positive(t, o.blocks)
	}
	switch c.row.effect {
	case breaks:
		require.Positive(t, o.opened)
		require.Positive(t, o.fallbacks)
	case oneKey:
		require.Zero(t, o.opened, "F4")
		require.Positive(t, o.keyFaults, "F4")
	case answered:
		require.Zero(t, o.opened)
		require.Zero(t, o.keyFaults)
	}
}

// silent logs nothing.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
