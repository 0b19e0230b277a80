package distributed_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// Eight instances lose Redis and get it back, twice: together they stay within
// the limit during the outage, and within the published bound over all of it.
func TestW3_EightInstancesThroughOutages(t *testing.T) {
	cases.Slow(t)
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
	var table strings.Builder
	phase := new(atomic.Value)
	interval := func(name string, d time.Duration) {
		phase.Store(name)
		before, since := admitted.Load(), time.Now()
		time.Sleep(d)
		n, took := admitted.Load()-before, time.Since(since)
		fmt.Fprintf(&table, "\n%-10s %6d admitted in %6v, %5.0f/s of %d/s", name, n, took.Round(time.Millisecond),
			float64(n)/took.Seconds(), rate)
		if name == "outage" {
			require.LessOrEqual(t, float64(n), burst+rate*took.Seconds(), "within the limit during the outage")
		}
	}
	phase.Store("healthy")
	series := watch(&group, stop, began, &admitted, phase)
	interval("healthy", 500*time.Millisecond)
	o := outagesOf(server, proxy)
	for range o.times {
		o.begin()
		interval("going", 300*time.Millisecond)
		interval("outage", o.long)
		o.end()
		interval("coming", 500*time.Millisecond)
		interval("healthy", o.after)
	}
	close(stop)
	group.Wait()
	t.Log(table.String())
	t.Log(series.draw(t, rate))
	require.Zero(t, failed.Load())
	w3 := 2*(burst+rate*time.Since(began).Seconds()) + o.losses*burst
	require.LessOrEqual(t, float64(admitted.Load()), w3, "W3")
	for i, l := range f.limiters {
		require.Eventually(t, func() bool { return acquire(t, l, "other", 0).Source == algo.SourceRemote },
			10*time.Second, 10*time.Millisecond, "instance %d", i)
	}
}

// outages is how Redis goes away and comes back.
type outages struct {
	times       int
	begin, end  func()
	long, after time.Duration
	losses      float64 // of its data
}

// outagesOf: connections are refused for a second, twice; in a long run the
// server is killed and stays away for ten seconds.
func outagesOf(server *redistest.Server, proxy *redistest.Proxy) outages {
	if cases.Long() {
		return outages{1, server.Kill, server.Restart, 9700 * time.Millisecond, 4 * time.Second, 1}
	}
	refuse := func() { proxy.Set(redistest.Fault{Refuse: true}) }
	return outages{2, refuse, func() { proxy.Set(redistest.Fault{}) },
		700 * time.Millisecond, 500 * time.Millisecond, 0}
}

// rates is a series of the admissions of all instances together.
type rates struct{ points []ratePoint }

type ratePoint struct {
	at        time.Duration // the end of the step
	phase     string
	perSecond float64
}

// watch notes the rate of every step of 100 ms until stop.
func watch(group *sync.WaitGroup, stop <-chan struct{}, began time.Time, admitted *atomic.Int64, phase *atomic.Value) *rates {
	r := new(rates)
	group.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		last, count := time.Now(), admitted.Load()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			now, n := time.Now(), admitted.Load()
			r.points = append(r.points, ratePoint{now.Sub(began), phase.Load().(string), float64(n-count) / now.Sub(last).Seconds()})
			last, count = now, n
		}
	})
	return r
}

// draw prints the series, and writes it as CSV to the file that SLUICE_DRAW
// names.
func (r *rates) draw(t *testing.T, limit float64) string {
	var text, csv strings.Builder
	csv.WriteString("seconds,phase,admitted_per_second,limit_per_second\n")
	for _, p := range r.points {
		bar := strings.Repeat("#", int(p.perSecond/limit*40))
		fmt.Fprintf(&text, "\n%5.2f s  %-8s %6.0f/s %s", p.at.Seconds(), p.phase, p.perSecond, bar)
		fmt.Fprintf(&csv, "%.3f,%s,%.1f,%.0f\n", p.at.Seconds(), p.phase, p.perSecond, limit)
	}
	if path := os.Getenv("SLUICE_DRAW"); path != "" {
		require.NoError(t, os.WriteFile(path, []byte(csv.String()), 0o600))
	}
	return text.String()
}
