package adaptive_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// model is a machine with one processor, in a time of its own.
type model struct {
	at         time.Duration
	used       time.Duration
	runnable   int
	goroutines int
	timeless   bool          // the use of the processor is unknown
	blind      bool          // the number of runnable goroutines is unknown
	share      float64       // of the processor for the model
	counted    bool          // there is a goroutine for each request, and ten more
	quota      float64       // of a control group, which serve ignores; 0: none
	batch      int           // requests that arrive at once in serve; 0: 1
	denial     time.Duration // processor time of a denial; 0: rejecting
	polled     int           // requests that the poller hands out at a time, once those before are done; 0: all
	reads      bool          // each request has started a goroutine that reads on, as net/http's have
	chance     *rand.PCG
	class      func(i int) adaptive.Class
	key        func(i int) string
}

func (m *model) Now() int64            { return int64(m.at) + 1 }
func (m *model) Runnable() (int, bool) { return m.runnable, !m.blind }
func (m *model) CPU() (time.Duration, bool) {
	if m.timeless {
		return 0, false
	}
	return m.used, true
}

func (m *model) Procs() int             { return 1 }
func (m *model) Quota() (float64, bool) { return m.quota, m.quota > 0 }

// Goroutines is unknown where it is 0 and they are not counted.
func (m *model) Goroutines() (int, bool) {
	if m.counted {
		return m.runnable + 10, true
	}
	return m.goroutines, m.goroutines > 0
}
func (m *model) Rand() uint64 { return m.chance.Uint64() }

func newModel() *model {
	return &model{
		share: 1, chance: rand.NewPCG(1, 2),
		class: func(i int) adaptive.Class { return adaptive.Class(i%2) * adaptive.Sheddable },
		key:   func(int) string { return "" },
	}
}

// option runs a limiter or a strategy on the model.
func (m *model) option() adaptive.Option { return adaptive.WithMachine(m) }

// limiter is a limiter on the model; its strategy must be on it too.
func (m *model) limiter(t testing.TB, s adaptive.Strategy, opts ...adaptive.Option) *adaptive.Limiter {
	t.Helper()
	return newLimiter(t, s, append(opts, m.option())...)
}

// burn uses the processor.
func (m *model) burn(work time.Duration) {
	m.used += work
	m.at += time.Duration(float64(work) / m.share)
}

// arrival is one request of the model.
type arrival struct {
	class   adaptive.Class
	due     time.Duration
	allowed bool
	took    time.Duration // until the answer
}

const rejecting = 15 * time.Microsecond

// serve has evenly spaced arrivals, at load times the capacity, for a time. Each
// request waits in the run queue until the earlier ones are done; then its goroutine
// runs for the first time and acquires. The model's functions class and key are of
// the i-th request; by default every other request is Sheddable, the others are
// Critical.
func (m *model) serve(t testing.TB, l algo.Limiter, work time.Duration, load float64, d time.Duration) []arrival {
	t.Helper()
	every := time.Duration(float64(work) / load / m.share)
	all := make([]arrival, d/every)
	start := m.at
	for i := range all {
		all[i].due = start + time.Duration(i-i%max(m.batch, 1))*every
		all[i].class = m.class(i)
	}
	arrived, ready := 0, 0
	for i := range all {
		v := &all[i]
		m.at = max(m.at, v.due)
		for arrived < len(all) && all[arrived].due <= m.at {
			arrived++
		}
		if m.polled == 0 || ready == i {
			ready = min(arrived, i+cmp.Or(m.polled, len(all)))
		}
		m.runnable = ready - i - 1
		if m.reads {
			m.runnable++
		}
		lease, err := l.Acquire(adaptive.WithClass(background, v.class), m.key(i), 1)
		if err != nil { // require takes longer than the limiter
			t.Fatal(err)
		}
		if v.allowed = lease.Allowed; v.allowed {
			m.burn(work)
			lease.Release(algo.Succeeded)
		} else {
			m.burn(cmp.Or(m.denial, rejecting))
		}
		v.took = m.at - v.due
	}
	return all
}

// denied is the share of the requests due from an instant on that were denied.
func denied(all []arrival, from time.Duration) float64 {
	n, no := 0, 0
	for _, v := range all {
		if v.due >= from {
			if n++; !v.allowed {
				no++
			}
		}
	}
	return float64(no) / float64(max(n, 1))
}

// longest is the longest response time of the requests admitted from an instant on.
func longest(all []arrival, from time.Duration) (d time.Duration) {
	for _, v := range all {
		if v.allowed && v.due >= from {
			d = max(d, v.took)
		}
	}
	return d
}

// remote is a dependency with a number of workers.
type remote struct {
	free    []time.Duration // when each worker is free: a heap
	service time.Duration
	draw    func() time.Duration // replaces service
	gap     func() float64       // between arrivals, of the mean; nil: always 1
	outcome algo.Outcome
	cost    int64   // in units; 0: 1
	flying  []*call // in the order of the ends
}

type call struct {
	end   time.Duration
	due   time.Duration
	lease algo.Lease
}

// play has arrivals at a rate for a time; each needs one worker.
func (r *remote) play(t testing.TB, m *model, l algo.Limiter, rate float64, d time.Duration) []arrival {
	t.Helper()
	every := time.Duration(float64(time.Second) / rate)
	var all []arrival
	for end := m.at + d; m.at < end; m.at += r.next(every) {
		r.finish(m)
		lease, err := l.Acquire(context.Background(), "", cmp.Or(r.cost, 1))
		if err != nil { // require takes longer than the limiter
			t.Fatal(err)
		}
		v := arrival{due: m.at, allowed: lease.Allowed}
		if lease.Allowed {
			ends := max(r.free[0], m.at) + r.takes()
			r.occupy(ends)
			v.took = ends - m.at
			r.fly(call{ends, m.at, lease})
		}
		all = append(all, v)
	}
	return all
}

// occupy gives the worker that is free first work until an instant.
func (r *remote) occupy(until time.Duration) {
	r.free[0] = until
	for i := 0; ; {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r.free); child++ {
			if r.free[child] < r.free[first] {
				first = child
			}
		}
		if first == i {
			return
		}
		r.free[i], r.free[first] = r.free[first], r.free[i]
		i = first
	}
}

// fly notes a call, in the order of the ends.
func (r *remote) fly(c call) {
	i, _ := slices.BinarySearchFunc(r.flying, c.end+1, func(f *call, end time.Duration) int { return cmp.Compare(f.end, end) })
	r.flying = slices.Insert(r.flying, i, &c)
}

func (r *remote) next(every time.Duration) time.Duration {
	if r.gap == nil {
		return every
	}
	return time.Duration(r.gap() * float64(every))
}

func (r *remote) takes() time.Duration {
	if r.draw == nil {
		return r.service
	}
	return r.draw()
}

// finish releases the work that has ended by now, in the order of the ends, each at
// its own instant.
func (r *remote) finish(m *model) {
	is := m.at
	for len(r.flying) > 0 && r.flying[0].end <= is {
		m.at = r.flying[0].end
		r.flying[0].lease.Release(r.outcome)
		r.flying = r.flying[1:]
	}
	m.at = is
}
