package algo

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// This file tests refunds, of all limiters in the same way: no refund lets more
// pass than the bound. The rows have the constructor and the bound of each
// limiter; the crowd is the common test.

// kept are the units that one admission keeps, from an instant on. state is the
// state in its lease.
type kept struct {
	at, n, charged int64
	state          [3]int64
}

// crowdRow is one limiter in the table.
type crowdRow struct {
	name string
	// make makes the limiter, with little room, at the first of specs.
	make func(o ...Option) atReading
	// specs are limits that replace one another in use; none, or two of which
	// neither is raised above the largest debt of the other.
	specs []string
	// costs are the final costs of requests.
	costs []int64
	// check fails the test if the units kept by one key exceed the bound.
	check func(t *testing.T, key string, all []kept)
}

// ticksRow is a bucket that never delays: the units that are kept, as time at
// the rate of their admission, stay within depth and the elapsed time. With
// forward a request may add its own cost.
func ticksRow(name string, make func(o ...Option) atReading, depth time.Duration, forward bool, specs ...string) crowdRow {
	return crowdRow{name, make, specs, []int64{0, 1, 2, 3, 5, 9}, func(t *testing.T, key string, all []kept) {
		for i, first := range all {
			var sum, largest int64
			for _, k := range all[i:] {
				sum += k.n * k.state[1]
				largest = max(largest, k.n*k.state[1])
				most := ticks(depth) + k.at - first.at
				if forward {
					most += largest
				}
				require.LessOrEqual(t, sum, most, "key %q: %v", key, all)
			}
		}
	}}
}

// windowRow is a window of one second: any window holds at most anywhere units,
// and each second since the limiter was made at most each.
func windowRow(name string, make func(o ...Option) atReading, anywhere, each int64, specs ...string) crowdRow {
	return crowdRow{name, make, specs, []int64{0, 1, 2, 3, 5, 1 << 40}, func(t *testing.T, key string, all []kept) {
		second := ticks(time.Second)
		seconds := map[int64]int64{}
		for i, first := range all {
			var sum int64
			for _, k := range all[i:] {
				if k.at-first.at < second {
					sum += k.n
				}
			}
			require.LessOrEqual(t, sum, anywhere, "key %q: %v", key, all)
			number := int64(math.Floor(float64(first.at-64) / float64(second)))
			seconds[number] += first.n
			require.LessOrEqual(t, seconds[number], each, "key %q: %v", key, all)
		}
	}}
}

// paidRow: no request starts before the cost of earlier ones has drained.
func paidRow(name string, make func(o ...Option) atReading, specs ...string) crowdRow {
	return crowdRow{name, make, specs, []int64{0, 1, 2, 3, 4}, func(t *testing.T, key string, all []kept) {
		all = slices.DeleteFunc(all, func(k kept) bool { return k.n == 0 })
		for i, first := range all {
			var sum int64
			for _, k := range all[i:] {
				require.LessOrEqual(t, sum, k.at-first.at, "key %q: %v", key, all)
				sum += k.state[0] * k.n / k.charged
			}
		}
	}}
}

// colorRow is a marker under limiters of two colors: in any window at most green
// and the committed rate are green, and not more than all and the rates pass.
func colorRow(name string, make func(o ...Option) atReading, green, total func(elapsed time.Duration) float64) crowdRow {
	return crowdRow{name, make, nil, []int64{0, 1, 2, 3}, func(t *testing.T, key string, all []kept) {
		for i, first := range all {
			var units [2]int64
			for _, k := range all[i:] {
				units[k.state[0]] += k.n
				elapsed := time.Duration(k.at - first.at) // a marker counts in nanoseconds
				require.LessOrEqual(t, float64(units[decide.Green]), green(elapsed), "key %q: %v", key, all)
				require.LessOrEqual(t, float64(units[decide.Green]+units[decide.Yellow]), total(elapsed), "key %q: %v", key, all)
			}
		}
	}}
}

// of makes a limiter from its text form.
func of(spec string) func(o ...Option) atReading {
	return func(o ...Option) atReading { return Must(Must(Parse(spec)).New(o...)) }
}

// colors makes limiters of both colors over one marker.
func colors(m *decide.ThreeColor, err error) func(o ...Option) atReading {
	Must(m, err)
	return func(o ...Option) atReading {
		store := colorStore(o...)
		return twoColors{colored(m, store, decide.Green), colored(m, store, decide.Yellow)}
	}
}

// twoColors asks for Green or Yellow.
type twoColors struct {
	*RateLimiter
	yellow *RateLimiter
}

func (l twoColors) acquireAt(lease *Lease, reading *keystore.Reading, key string, n int64) error {
	if reading.Ticks/64%2 == 0 {
		return l.yellow.acquireAt(lease, reading, key, n)
	}
	return l.RateLimiter.acquireAt(lease, reading, key, n)
}

// bound is burst plus the refill over time.
func bound(burst, perSecond float64) func(time.Duration) float64 {
	return func(d time.Duration) float64 { return burst + perSecond*d.Seconds() + 1e-6 }
}

var crowdRows = []crowdRow{
	ticksRow("token bucket", of("10/s burst 3"), 340*time.Millisecond, false, "10/s burst 3", "18/s burst 6"),
	ticksRow("leaky bucket", of("leaky-bucket 10/s burst 3"), 300*time.Millisecond, false),
	ticksRow("pacer", of("pacer 10/s slack 2 queue 0"), 300*time.Millisecond, false),
	ticksRow("nginx", of("nginx 10/s burst 2 nodelay"), 340*time.Millisecond, false, "nginx 10/s burst 2 nodelay", "nginx 18/s burst 5 nodelay"),
	ticksRow("smooth bursty", of("smooth-bursty 10/s burst 2"), 230*time.Millisecond, true, "smooth-bursty 10/s burst 2", "smooth-bursty 18/s burst 4"),
	ticksRow("no warm-up", of("smooth-warming-up 10/s"), time.Second, true, "smooth-warming-up 10/s", "smooth-warming-up 18/s"),
	ticksRow("strict", of("strict 10/s burst 3"), 470*time.Millisecond, false, "strict 10/s burst 3", "strict 18/s burst 6"),
	windowRow("strict window", of("strict 3/s"), 3, math.MaxInt64),
	windowRow("fixed window", of("fixed-window 3/s"), 6, 3, "fixed-window 3/s", "fixed-window 2/s"),
	windowRow("spread", of("fixed-window 3/s spread"), 6, 6, "fixed-window 3/s spread", "fixed-window 2/s spread"),
	windowRow("two counters", of("sliding-window 3/s"), 5, math.MaxInt64),
	windowRow("two counters, quota", of("sliding-window 3/s"), 5, math.MaxInt64, "sliding-window 3/s", "sliding-window 2/s"),
	windowRow("two counters, period", of("sliding-window 3/s"), 5, math.MaxInt64, "sliding-window 3/s", "sliding-window 3/2s"),
	windowRow("cells", of("sliding-window 3/s cells 4"), 3, math.MaxInt64, "sliding-window 3/s cells 4", "sliding-window 2/s cells 4"),
	windowRow("cells, period", of("sliding-window 3/s cells 4"), 3, math.MaxInt64, "sliding-window 3/s cells 4", "sliding-window 3/2s cells 4"),
	windowRow("log", of("sliding-log 3/s"), 3, math.MaxInt64, "sliding-log 3/s", "sliding-log 2/s"),
	windowRow("log, period", of("sliding-log 3/s"), 3, math.MaxInt64, "sliding-log 3/s", "sliding-log 3/2s"),
	paidRow("warming up", of("smooth-warming-up 10/s warmup 1s"), "smooth-warming-up 10/s warmup 1s", "smooth-warming-up 17/s warmup 1s"),
	colorRow("srTCM", colors(decide.NewSRTCM(PerSecond(10).local(), 3, 2)), bound(3, 10), bound(5, 10)),
	colorRow("trTCM", colors(decide.NewTRTCM(PerSecond(7).local(), 3, PerSecond(11).local(), 4)), bound(3, 7), bound(4, 11)),
	colorRow("RFC 4115", colors(decide.NewRFC4115(PerSecond(7).local(), 3, PerSecond(4).local(), 2)), bound(3, 7), bound(5, 11)),
}

// TestW2_RefundsMintNothing: four goroutines charge, settle and cancel keys that fight for slots,
// or the empty one, and some read the clock long before they decide. (Without DenyNew there is room for
// all keys: an evicted one starts afresh.) In some trials the limit changes meanwhile. The units
// that are not refunded stay within the bound.
func TestW2_RefundsMintNothing(t *testing.T) {
	for _, row := range crowdRows {
		t.Run(row.name, func(t *testing.T) {
			interleaved(t)
			n := cases.Count(120, 5_000)
			for trial := range n {
				synctest.Test(t, func(t *testing.T) {
					opts := []Option{MaxKeys([]int{64, 2}[trial%2])}
					if trial%2 == 1 {
						opts = append(opts, DenyNew())
					}
					c := &crowd{row: row, l: row.make(opts...), opts: opts, all: map[string][]kept{}}
					c.run(uint64(trial))
					for key, all := range c.all {
						slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(a.at, b.at) })
						row.check(t, key, all)
					}
				})
			}
			t.Logf("W2: %d crowds of 4 that charge, settle and cancel", n)
		})
	}
}

// crowd is a limiter in use.
type crowd struct {
	row   crowdRow
	l     atReading
	opts  []Option
	keys  int
	costs []int64
	mu    sync.Mutex
	all   map[string][]kept
}

func (c *crowd) run(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 4))
	c.keys = rnd.IntN(2) * (1 + rnd.IntN(32))
	c.costs = c.row.costs[:4]
	if rnd.IntN(2) == 0 { // more is cut off, and ends the refunds of earlier charges
		c.costs = c.row.costs
	}
	change := len(c.row.specs) > 0 && rnd.IntN(2) == 0
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() { c.charge(rand.New(rand.NewPCG(seed, uint64(g)))) })
	}
	for i := 1; change && i < 60; i++ {
		time.Sleep(time.Duration(rnd.Int64N(int64(time.Second / 2))))
		if err := Must(Must(Parse(c.row.specs[i%2])).With(c.opts...)).Apply(c.l); err != nil {
			panic(err)
		}
	}
	group.Wait()
}

// charge is the work of one goroutine of the crowd.
func (c *crowd) charge(rnd *rand.Rand) {
	for range 40 {
		key := ""
		if c.keys > 0 {
			key = fmt.Sprint(rnd.IntN(c.keys))
		}
		now, n := c.l.clock().Now(), 1+rnd.Int64N(3)
		pause(rnd, time.Second)
		if lease := at(c.l, now, key, n); lease.Allowed && lease.Source != SourceOff {
			k := kept{at: lease.handle.At, charged: n, state: lease.handle.State}
			k.n = correct(&lease, rnd, c.costs)
			c.mu.Lock()
			c.all[key] = append(c.all[key], k)
			c.mu.Unlock()
		}
		pause(rnd, 300*time.Millisecond)
	}
}

// correct settles and cancels a lease, and returns how many of its units were
// kept all the time.
func correct(lease *Lease, rnd *rand.Rand, costs []int64) (n int64) {
	n = lease.handle.N
	for range rnd.IntN(6) {
		pause(rnd, time.Second/4)
		cost := costs[rnd.IntN(len(costs))]
		lease.Settle(cost)
		n = min(n, cost)
	}
	if rnd.IntN(3) == 0 {
		lease.Release(Canceled)
		return 0
	}
	return n
}
