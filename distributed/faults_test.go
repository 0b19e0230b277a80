package distributed_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// faultRow is one fault: how Redis is broken and repaired.
type faultRow struct {
	name        string
	effect      effect
	losses      [3]int // how often Redis loses its data, by position
	begin, over func(*testing.T, *rig)
}

// effect is the required effect of a fault on the breaker.
type effect uint8

const (
	breaks   effect = iota // it opens
	either                 // some calls fail, perhaps enough of them
	oneKey                 // one key's decisions are local, and it stays closed
	answered               // Redis goes on deciding, and it stays closed
)

// timeout is long where every question has its answer: a busy machine alone
// must not make a reply late.
func (e effect) timeout() time.Duration {
	if e == oneKey || e == answered {
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
	return faultRow{
		name: name, effect: e,
		begin: func(_ *testing.T, r *rig) { r.proxy.Set(f) },
		over:  func(_ *testing.T, r *rig) { r.proxy.Set(redistest.Fault{}) },
	}
}

func byServer(name string, e effect, begin, over func(*redistest.Server), losses ...int) faultRow {
	row := faultRow{
		name: name, effect: e,
		begin: func(_ *testing.T, r *rig) { begin(r.server) },
		over:  func(_ *testing.T, r *rig) { over(r.server) },
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

// byClock is the effect of a step of the server's clock on the keys: after a step
// forward, their instants lie further back. It clears their debt, so it counts as
// a loss of data.
func byClock(name string, step time.Duration, losses ...int) faultRow {
	row := faultRow{
		name: name, effect: answered,
		begin: func(_ *testing.T, r *rig) { r.shift(-step) },
		over:  func(_ *testing.T, r *rig) { r.shift(step) },
	}
	copy(row.losses[:], losses)
	return row
}

func nothing(*redistest.Server) {}

var faultRows = []faultRow{
	byProxy("refused", breaks, redistest.Fault{Refuse: true}),
	byProxy("reset", breaks, redistest.Fault{Reset: true}),
	byProxy("black-holed", breaks, redistest.Fault{BlackHole: true}),
	byProxy("200 ms", breaks, redistest.Fault{Delay: 200 * time.Millisecond}),
	byProxy("jitter 10-70 ms", either, redistest.Fault{Delay: 10 * time.Millisecond, Jitter: 60 * time.Millisecond}),
	byProxy("25 ms away", either, redistest.Fault{Delay: 25 * time.Millisecond}),
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
		begin: func(_ *testing.T, r *rig) {
			r.server.Do("HSET", "other", "field", "value")
			r.server.Do("RENAME", "other", redisKeyOf(faultKeys[0]))
		},
		over: func(_ *testing.T, r *rig) { r.server.Do("DEL", redisKeyOf(faultKeys[0])) },
	},
	{
		// Another service, or the last version of this one, with a smaller limit of the name.
		name: "mixed parameters", effect: answered,
		begin: func(t *testing.T, r *rig) {
			store := newStore(t, r.server.Client(), distributed.WithInstances(faultInstances))
			l := must[*distributed.Limiter](t)(store.TokenBucket("fault", algo.PerSecond(faultRate/5), algo.Burst(faultBurst/2)))
			for range 20 {
				for _, key := range faultKeys {
					acquire(t, l, key, 1)
				}
			}
		},
		over: func(*testing.T, *rig) {},
	},
	byClock("clock +1 h (by keys)", time.Hour, 0, 1, 1),
	byClock("clock -1 h (by keys)", -time.Hour, 1, 1, 1),
}

// TestW3_M3_F1_F2_F3_F4_FaultTable drives two instances through every fault, at
// the start, in the middle and during a recovery, and prints the decisions that
// their callers got. Decisions keep the deadline (F1) and none is an error; while
// the breaker is open there is at most one call in a probe interval (F2); Redis
// decides again soon after (F3); the fault of one key affects no other (F4); the
// admissions keep the bound in every window (W3), and every key expires (M3).
//
// Latencies and the time to recover depend on the machine's load: they are
// printed, and asserted with a wide margin. The admissions of a window are
// compared with B + R*w + N*(Bf + Rf*w), plus B for each loss of data: peak is the
// largest number in any window beyond the rates' part, bound the sum of the
// bursts.
func TestW3_M3_F1_F2_F3_F4_FaultTable(t *testing.T) {
	logging.Disable() // go-redis logs every failed dial
	t.Cleanup(logging.Enable)
	var mu sync.Mutex
	lines := make([]string, 3*len(faultRows))
	t.Run("rows", func(t *testing.T) {
		for i, row := range faultRows {
			for at := atStart; at <= inRecovery; at++ {
				t.Run(fmt.Sprintf("%s/%v", row.name, at), func(t *testing.T) {
					t.Parallel()
					out := newRig(t, row.effect.timeout()).run(t, row, at)
					mu.Lock()
					lines[3*i+int(at)] = out.line(row, at)
					mu.Unlock()
					out.check(t, row)
				})
			}
		}
	})
	for _, id := range []string{"W3", "F4"} {
		t.Logf("%s: %d faults, each at the start, in the middle and in a recovery", id, len(faultRows))
	}
	t.Logf("\n%-21s %-9s %9s %8s %6s %11s %10s %5s %16s %5s %6s %15s %14s\n%s", "fault", "when", "decisions", "fallback",
		"errors", "peak/bound", "over-adm.", "p95", "worst/deadline", ">5ms", "opened", "calls/intervals", "back (probes)",
		strings.Join(lines, "\n"))
}

func (o *outcome) line(row faultRow, at position) string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.0fms", float64(d)/float64(time.Millisecond)) }
	return fmt.Sprintf("%-21s %-9v %9d %8d %6d %11s %10.0f %5s %16s %5d %6d %15s %14s", row.name, at, o.decisions, o.fallbacks,
		o.failed, fmt.Sprintf("%.0f/%.0f", o.peak, o.bound), max(o.peak-o.bound, 0), ms(o.p95),
		ms(o.worst)+"/"+ms(row.effect.timeout()), o.late, o.opened,
		fmt.Sprintf("%d/%.1f", o.calls, o.intervals), fmt.Sprintf("%s (%.1f)", ms(o.back), float64(o.back)/float64(probeEvery)))
}

func (o *outcome) check(t *testing.T, row faultRow) {
	const grace = 500 * time.Millisecond
	require.Positive(t, o.decisions)
	require.Zero(t, o.failed, "no failure of Redis is an error")
	require.LessOrEqual(t, o.peak, o.bound, "W3")
	require.Less(t, o.p95, row.effect.timeout()+grace, "F1")
	require.Less(t, o.back, 2*probeEvery+8*grace, "F3")
	for _, m := range o.meters {
		require.LessOrEqual(t, float64(m.calls), m.intervals()+1, "F2")
	}
	switch row.effect {
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
