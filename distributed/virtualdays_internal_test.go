package distributed

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

const (
	virtualInstances = 5
	virtualBurst     = 20
	virtualRate      = 30 // a minute
	virtualTimeout   = 20 * time.Millisecond
	virtualProbe     = time.Second
)

var virtualKeys = [...]string{"a", "b", "c"}

// TestW3_F1_F2_F3_VirtualDays: virtual days in which Redis is refused, silent, slow, loses replies or data, becomes
// read-only and has its clock set back, for some instances or all, for
// milliseconds or minutes, at random. The five real stores together keep the
// bound in every window; no decision is later than its deadline;
// while a breaker is open a probe interval has one call; two intervals after
// the end of a fault all breakers are closed.
func TestW3_F1_F2_F3_VirtualDays(t *testing.T) {
	hours := max(cases.Count(24, 720), 2)
	var all virtualTally
	for seed, left := 0, hours; left > 0; seed, left = seed+1, left-6 {
		freshRequests(t)
		synctest.Test(t, func(t *testing.T) {
			d := newVirtualDay(uint64(seed), seed%4 == 3)
			d.run(t, time.Duration(min(left, 6))*time.Hour)
			d.check(t)
			all.add(&d.virtualTally)
		})
	}
	require.Positive(t, all.outages)
	require.Positive(t, all.locally)
	t.Logf("W3: %.1f virtual days of %d instances, %d outages, %d losses of data: %d decisions, %d without Redis; "+
		"at most %.1f of %d units beyond the rates", float64(hours)/24, virtualInstances, all.outages, all.losses,
		all.decisions, all.locally, all.peak, 2*virtualBurst)
	t.Logf("F1: %d decisions, the latest after %v of %v", all.decisions, all.latest, virtualTimeout)
	t.Logf("F2: %d calls while a breaker was open, the nearest two %v apart, interval %v", all.probes, all.nearest, virtualProbe)
	t.Logf("F3: %d recoveries, each within 2 intervals", all.recoveries)
}

// TestW3_VirtualDaysOfCountedInstances: instances that count each other, of which
// some are cut off and others not, for as long as it takes that they are no
// longer counted. Those that are left then take larger parts, of 1/4, 1/3, 1/2
// and all, while each that was cut off keeps the part that it had.
func TestW3_VirtualDaysOfCountedInstances(t *testing.T) {
	hours := max(cases.Count(12, 240), 2)
	var all virtualTally
	for seed, left := 0, hours; left > 0; seed, left = seed+1, left-6 {
		freshRequests(t)
		synctest.Test(t, func(t *testing.T) {
			d := newVirtualDay(uint64(seed), true)
			d.apart = true
			d.run(t, time.Duration(min(left, 6))*time.Hour)
			d.check(t)
			all.add(&d.virtualTally)
		})
	}
	require.Positive(t, all.locally)
	t.Logf("W3: %.1f virtual days of %d instances that count each other, %d outages of some or all: at most %.1f of %.1f units beyond the rates",
		float64(hours)/24, virtualInstances, all.outages, all.peak, apartBound*virtualBurst)
}

// apartBound is the share that Redis admits and 1/5 + 1/4 + 1/3 + 1/2 + 1 locally.
const apartBound = 1 + 137./60

// virtualTally is the printed numbers.
type virtualTally struct {
	outages, losses, decisions, locally, probes, recoveries int
	peak                                                    float64
	latest, nearest                                         time.Duration
}

func (v *virtualTally) add(o *virtualTally) {
	v.outages += o.outages
	v.losses += o.losses
	v.decisions += o.decisions
	v.locally += o.locally
	v.probes += o.probes
	v.recoveries += o.recoveries
	v.peak = max(v.peak, o.peak)
	v.latest = max(v.latest, o.latest)
	if v.nearest == 0 || o.nearest > 0 && o.nearest < v.nearest {
		v.nearest = o.nearest
	}
}

// virtualEvent is n units admitted, or, below 0, the burst that a loss of data
// gives every key.
type virtualEvent struct {
	at time.Time
	n  int64
}

// virtualDay is one run.
type virtualDay struct {
	virtualTally
	seed     uint64
	server   *virtualServer
	stores   [virtualInstances]*Store
	breakers [virtualInstances]virtualBreaker
	counted  bool // the instances count each other; then faults hit all of them
	apart    bool // or some, and no data are lost
	failure  error

	mu  sync.Mutex
	log map[string][]virtualEvent
}

// virtualBreaker observes one instance's breaker.
type virtualBreaker struct {
	mu     sync.Mutex
	state  Phase
	since  time.Time
	last   time.Time // the last call that left while it was open
	probes int
	gaps   []time.Duration
	newest int // calls of the present instant among gaps
}

// event notes the breaker's phase. What is kept leaves in the instant in which it closes, before
// or after the event.
func (b *virtualBreaker) event(e Event) {
	if e.Kind == BreakerChanged {
		b.mu.Lock()
		defer b.mu.Unlock()
		if e.Phase != PhaseOpen && b.last.Equal(time.Now()) {
			b.gaps = b.gaps[:len(b.gaps)-b.newest]
		}
		b.state, b.since = e.Phase, time.Now()
	}
}

// sent notes a call. Requests that were queued when the breaker opened leave
// within the timeout of their callers.
func (b *virtualBreaker) sent() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != PhaseOpen || time.Since(b.since) <= virtualTimeout {
		return
	}
	b.probes++
	if !b.last.Equal(time.Now()) {
		b.newest = 0
	}
	if b.last.After(b.since) {
		b.gaps = append(b.gaps, time.Since(b.last))
		b.newest++
	}
	b.last = time.Now()
}

func (b *virtualBreaker) now() Phase { b.mu.Lock(); defer b.mu.Unlock(); return b.state }

func newVirtualDay(seed uint64, counted bool) *virtualDay {
	d := &virtualDay{seed: seed, server: newVirtualServer(perMicros(virtualRate, time.Minute), virtualBurst), log: map[string][]virtualEvent{}, counted: counted}
	for i := range d.stores {
		b := &d.breakers[i]
		opts := []Option{
			WithTimeout(virtualTimeout), ProbeEvery(virtualProbe), WithHook(b.event),
			WithLogger(slog.New(slog.DiscardHandler)), WithDenyCache(int(seed/2%2) * 100),
		}
		if !d.counted {
			opts = append(opts, WithInstances(virtualInstances))
		}
		store, err := NewWithTransport(&virtualTransport{server: d.server, instance: i, sent: b.sent}, opts...)
		if err != nil {
			panic(err)
		}
		d.stores[i] = store
	}
	return d
}

// run lets two callers of each instance ask while the weather changes.
func (d *virtualDay) run(t *testing.T, long time.Duration) {
	end := time.Now().Add(long)
	var group sync.WaitGroup
	var limiters [virtualInstances]*Limiter
	for i, s := range d.stores {
		l, err := s.TokenBucket("shared", algo.PerMinute(virtualRate), algo.Burst(virtualBurst))
		require.NoError(t, err)
		limiters[i] = l
		_, err = l.Acquire(context.Background(), "first", 0) // the heartbeat begins
		require.NoError(t, err)
	}
	time.Sleep(3 * heartbeat)
	for i := range 2 * virtualInstances {
		group.Go(func() { d.ask(limiters[i%virtualInstances], rand.New(rand.NewPCG(d.seed, uint64(i))), end) })
	}
	group.Go(func() { d.changeWeather(end) })
	group.Wait()
	for _, s := range d.stores {
		require.NoError(t, s.Close())
	}
}

// ask asks in bursts, a minute apart on average.
func (d *virtualDay) ask(l *Limiter, rnd *rand.Rand, end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(time.Duration(rnd.ExpFloat64() * float64(time.Minute)))
		for range rnd.IntN(24) {
			d.askOnce(l, virtualKeys[rnd.IntN(len(virtualKeys))], 1+rnd.Int64N(3))
			time.Sleep(time.Duration(rnd.Int64N(int64(50 * time.Millisecond))))
		}
	}
}

func (d *virtualDay) askOnce(l *Limiter, key string, n int64) {
	asked := time.Now()
	lease, err := l.Acquire(context.Background(), key, n)
	took := time.Since(asked)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decisions++
	d.latest = max(d.latest, took)
	if err != nil {
		d.failure = err
	}
	if lease.Source == algo.SourceFallback {
		d.locally++
	}
	if lease.Allowed {
		d.log[key] = append(d.log[key], virtualEvent{asked, n})
	}
}

// changeWeather brings one fault after the other, of all sorts and lengths.
func (d *virtualDay) changeWeather(end time.Time) {
	rnd := rand.New(rand.NewPCG(d.seed, 99))
	lengths := []time.Duration{50 * time.Millisecond, 5 * time.Second, 10 * time.Minute}
	for {
		time.Sleep(time.Duration(rnd.ExpFloat64() * float64(lengths[rnd.IntN(len(lengths))])))
		if time.Now().After(end) {
			return
		}
		hit := rnd.Perm(virtualInstances)
		if (d.apart || !d.counted) && rnd.IntN(2) == 0 {
			hit = hit[:1+rnd.IntN(virtualInstances)]
		}
		d.outages++
		d.server.set(hit, trouble(1+rnd.IntN(int(troubles)-1)))
		time.Sleep(time.Duration(rnd.ExpFloat64() * float64(lengths[rnd.IntN(len(lengths))])))
		switch n := rnd.IntN(8); {
		case n == 0 && !d.apart:
			d.lose()
		case n == 1:
			d.server.setBack(time.Duration(rnd.Int64N(int64(time.Minute))))
		}
		d.server.set(hit, fair)
		if rnd.IntN(2) == 0 {
			d.requireRecovery()
		}
	}
}

// lose is a loss of data, which gives every key its burst anew.
func (d *virtualDay) lose() {
	d.server.lose()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.losses++
	for _, key := range virtualKeys {
		d.log[key] = append(d.log[key], virtualEvent{time.Now(), -virtualBurst})
	}
}

// requireRecovery is F3.
func (d *virtualDay) requireRecovery() {
	time.Sleep(2 * virtualProbe)
	d.recoveries++
	for i := range d.breakers {
		if s := d.breakers[i].now(); s != PhaseClosed {
			d.failure = cmp.Or(d.failure, fmt.Errorf("F3: the breaker of instance %d is %v two probe intervals after a fault", i, s))
		}
	}
}

// check is W3 in every window, F1 and F2.
func (d *virtualDay) check(t *testing.T) {
	require.NoError(t, d.failure, "seed %d", d.seed)
	require.LessOrEqual(t, d.latest, virtualTimeout, "F1, seed %d", d.seed)
	times := 2.
	if d.apart {
		times = apartBound
	}
	for key, log := range d.log {
		peak := mostBeyond(log, times*virtualRate/time.Minute.Seconds())
		d.peak = max(d.peak, peak)
		// An answer comes up to a timeout later than it was decided.
		slack := times * virtualRate * virtualTimeout.Minutes()
		require.LessOrEqual(t, peak, times*virtualBurst+slack, "W3, seed %d, key %s", d.seed, key)
	}
	for i := range d.breakers {
		b := &d.breakers[i]
		d.probes += b.probes
		for _, gap := range b.gaps {
			require.GreaterOrEqual(t, gap, virtualProbe, "F2, seed %d", d.seed)
			if d.nearest == 0 || gap < d.nearest {
				d.nearest = gap
			}
		}
	}
}

// mostBeyond is the most units that any window has beyond rate times its
// length.
func mostBeyond(log []virtualEvent, perSecond float64) (most float64) {
	slices.SortStableFunc(log, func(a, b virtualEvent) int { return a.at.Compare(b.at) })
	sum := 0.0
	for i, e := range log {
		if i > 0 {
			sum -= perSecond * e.at.Sub(log[i-1].at).Seconds()
		}
		sum = max(sum, 0) + float64(e.n)
		most = max(most, sum)
	}
	return most
}
