package distributed_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// fault is one row of the table: how Redis is broken and mended.
type faultRow struct {
	name        string
	begin, over func(s *redistest.Server, p *redistest.Proxy)
}

func proxyFault(name string, f redistest.Fault) faultRow {
	return faultRow{name,
		func(_ *redistest.Server, p *redistest.Proxy) { p.Set(f) },
		func(_ *redistest.Server, p *redistest.Proxy) { p.Set(redistest.Fault{}) }}
}

func serverFault(name string, begin, over func(s *redistest.Server)) faultRow {
	return faultRow{name,
		func(s *redistest.Server, _ *redistest.Proxy) { begin(s) },
		func(s *redistest.Server, _ *redistest.Proxy) { over(s) }}
}

var faultRows = []faultRow{
	proxyFault("refused", redistest.Fault{Refuse: true}),
	proxyFault("reset", redistest.Fault{Reset: true}),
	proxyFault("black hole", redistest.Fault{BlackHole: true}),
	proxyFault("slow, 1 s", redistest.Fault{Delay: time.Second}),
	proxyFault("cut in slices", redistest.Fault{Slice: true}),
	serverFault("stopped (SIGSTOP)", (*redistest.Server).Pause, (*redistest.Server).Resume),
	serverFault("killed", (*redistest.Server).Kill, (*redistest.Server).Restart),
	serverFault("out of memory",
		func(s *redistest.Server) { s.Do("CONFIG", "SET", "maxmemory", "1") },
		func(s *redistest.Server) { s.Do("CONFIG", "SET", "maxmemory", "0") }),
	serverFault("replicas missing",
		func(s *redistest.Server) { s.Do("CONFIG", "SET", "min-replicas-to-write", "1") },
		func(s *redistest.Server) { s.Do("CONFIG", "SET", "min-replicas-to-write", "0") }),
	serverFault("scripts flushed",
		func(s *redistest.Server) { s.Do("SCRIPT", "FLUSH") }, func(*redistest.Server) {}),
}

// faultResult is what callers saw.
type faultResult struct {
	decisions, fallbacks, failed int64
	worst                        time.Duration
	back                         time.Duration // from the end of the fault to the first decision of Redis
}

// TestFaultTable drives callers through every fault and prints what they saw:
// decisions go on within the deadline (F1), none of them is an error, what is
// admitted keeps the bound (W3), and Redis decides again within two probe
// intervals (F3).
func TestFaultTable(t *testing.T) {
	const timeout, probe, grace = 50 * time.Millisecond, 200 * time.Millisecond, 250 * time.Millisecond
	var mu sync.Mutex
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-20s %10s %10s %7s %12s %12s\n", "fault", "decisions", "fallback", "errors", "worst", "back after")
	t.Run("rows", func(t *testing.T) {
		for _, row := range faultRows {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				r := runFault(t, row, distributed.WithTimeout(timeout), distributed.WithProbeInterval(probe),
					distributed.WithInstances(1))
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(&table, "%-20s %10d %10d %7d %12v %12v\n", row.name, r.decisions, r.fallbacks, r.failed,
					r.worst.Round(time.Millisecond), r.back.Round(time.Millisecond))
				require.Zero(t, r.failed)
				require.Positive(t, r.decisions)
				require.Less(t, r.worst, timeout+grace)
				require.Less(t, r.back, 2*probe+8*grace)
			})
		}
	})
	t.Log(table.String())
}

// runFault runs four callers through a healthy time, the fault and the time
// after it.
func runFault(t *testing.T, row faultRow, opts ...distributed.Option) (r faultResult) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	store := newStore(t, viaProxy(t, proxy), opts...)
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerSecond(200), algo.Burst(50)))
	require.Eventually(t, func() bool { return acquire(t, l, "k", 0).Source == algo.Remote }, 10*time.Second, time.Millisecond)

	began := time.Now()
	var decisions, fallbacks, failed, admitted, worst atomic.Int64
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				asked := time.Now()
				lease, err := l.Acquire(ctx, "k", 1)
				if took := int64(time.Since(asked)); took > worst.Load() {
					worst.Store(took)
				}
				decisions.Add(1)
				if err != nil {
					failed.Add(1)
				}
				if lease.Source == algo.Fallback {
					fallbacks.Add(1)
				}
				if lease.Allowed {
					admitted.Add(1)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	row.begin(server, proxy)
	time.Sleep(500 * time.Millisecond)
	row.over(server, proxy)
	over := time.Now()
	require.Eventually(t, func() bool { return acquire(t, l, "k", 0).Source == algo.Remote }, 20*time.Second, time.Millisecond)
	r.back = time.Since(over)
	close(stop)
	group.Wait()
	r.decisions, r.fallbacks, r.failed = decisions.Load(), fallbacks.Load(), failed.Load()
	r.worst = time.Duration(worst.Load())
	// Redis and the one instance's part each keep the bound; a restart forgets
	// what was charged, once.
	bound := 50 + 200*time.Since(began).Seconds()
	require.LessOrEqual(t, float64(admitted.Load()), 3*bound)
	return r
}

// Eight instances lose Redis and get it back, twice: what they admit together
// stays within the limit during the outage, and within the published bound over
// all of it.
func TestEightInstancesThroughOutages(t *testing.T) {
	t.Parallel()
	const burst, rate, instances = 80, 400, 8
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	f := startFleet(t, instances, proxy.Addr(), algo.PerSecond(rate))
	for _, l := range f.limiters {
		require.NoError(t, l.SetBurst(burst))
	}
	f.settled(t)

	var admitted, failed atomic.Int64
	began := time.Now()
	stop := make(chan struct{})
	var group sync.WaitGroup
	for _, l := range f.limiters {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				lease, err := l.Acquire(ctx, "k", 1)
				if err != nil {
					failed.Add(1)
				} else if lease.Allowed {
					admitted.Add(1)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	var series strings.Builder
	interval := func(name string, d time.Duration) {
		before, since := admitted.Load(), time.Now()
		time.Sleep(d)
		n, took := admitted.Load()-before, time.Since(since)
		fmt.Fprintf(&series, "\n%-10s %6d admitted in %6v, %5.0f/s of %d/s", name, n, took.Round(time.Millisecond),
			float64(n)/took.Seconds(), rate)
		if name == "outage" {
			require.LessOrEqual(t, float64(n), burst+rate*took.Seconds(), "within the limit during the outage")
		}
	}
	interval("healthy", 500*time.Millisecond)
	for range 2 {
		proxy.Set(redistest.Fault{Refuse: true})
		interval("going", 300*time.Millisecond)
		interval("outage", 700*time.Millisecond)
		proxy.Set(redistest.Fault{})
		interval("coming", 500*time.Millisecond)
		interval("healthy", 500*time.Millisecond)
	}
	close(stop)
	group.Wait()
	t.Log(series.String())
	require.Zero(t, failed.Load())
	require.LessOrEqual(t, float64(admitted.Load()), 2*(burst+rate*time.Since(began).Seconds()), "W3")
	for i, l := range f.limiters {
		require.Eventually(t, func() bool { return acquire(t, l, "other", 0).Source == algo.Remote },
			10*time.Second, 10*time.Millisecond, "instance %d", i)
	}
}
