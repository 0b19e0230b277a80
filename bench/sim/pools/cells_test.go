package pools

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/adaptive"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// Cell is a service and its load.
type Cell struct {
	ID      string
	Conns   int           // connections of the pool; 0: no bottleneck
	Service time.Duration // mean time of a connection
	CV      float64       // coefficient of variation of that time, lognormal; 0: constant
	Slow    float64       // share of the requests that take Times as long as the others
	Times   float64
	Queue   int     // most requests that wait for a connection, the others fail; 0: no bound
	Hits    float64 // share of the requests that need no connection, and their time
	HitTime time.Duration
	Hang    float64           // share of the requests that hang
	Polls   int               // long polls beside
	Timeout bool              // a handler ends with its client, with a failure of its own
	SLO     time.Duration     // a later answer is useless
	Target  time.Duration     // of Default, the SLO if that is more
	Options []adaptive.Option // of the limiters of package adaptive
	Clients []Client          // nil: patient for .3, .5, 2 s, with handlers that obey and that do not
	Phases  []Phase
}

// Phase is a part of the load.
type Phase struct {
	For   time.Duration
	Load  float64       // of the capacity at the start
	Burst time.Duration // work that arrives at once; 0: single requests
	Do    func(*world)  // what changes at its begin
	// Judged: after Skip, good answers of the best possible at least Good, denied at most Denied;
	// negative: not judged.
	Skip         time.Duration
	Good, Denied float64
	Best         float64 // share of the requests that can be answered in time; 0: what the pool can serve
}

// capacity in requests a second: of the pool, with those that need none.
func (c *Cell) capacity() float64 {
	if c.Conns == 0 {
		return 1 / c.Service.Seconds()
	}
	return float64(c.Conns) / c.Service.Seconds() / (1 - c.Hits - c.Hang)
}

func (c *Cell) clients() []Client {
	if c.Clients != nil {
		return c.Clients
	}
	var all []Client
	for _, patience := range []time.Duration{300 * ms, 500 * ms, 2 * sec} {
		all = append(all, Client{patience, false}, Client{patience, true})
	}
	return all
}

const no = -1

// overload is .85x, an overload, and .85x again.
func overload(x, denied float64) []Phase {
	return []Phase{
		{For: 5 * sec, Load: .85, Good: no, Denied: denied},
		{For: 8 * sec, Load: x, Skip: sec, Good: .93, Denied: no},
		{For: 6 * sec, Load: .85, Skip: 2 * sec, Good: .95, Denied: denied},
	}
}

// calm is a load at which nothing is denied.
func calm(d time.Duration, load float64) Phase {
	return Phase{For: d, Load: load, Good: no, Denied: .01}
}

func patient(d ...time.Duration) (all []Client) {
	for _, p := range d {
		all = append(all, Client{p, false})
	}
	return all
}

// Cells are all cells; those of overload by their factor.
func Cells() (all []Cell) {
	pool := func(name string, conns int, service time.Duration, cv float64, slo time.Duration, factors ...float64) {
		denied := .01
		if cv > 0 {
			denied = .03
		}
		for _, x := range factors {
			all = append(all, Cell{ID: fmt.Sprintf("%s %gx", name, x), Conns: conns, Service: service, CV: cv, SLO: slo, Phases: overload(x, denied)})
		}
	}
	pool("4 x 50ms", 4, 50*ms, 0, 500*ms, 1.5, 2, 5, 10)
	pool("20 x 10ms", 20, 10*ms, 0, 500*ms, 2, 5)
	pool("10 x 20ms cv 2", 10, 20*ms, 2, 500*ms, 2, 5)
	pool("4 x 50ms cv 2", 4, 50*ms, 2, 500*ms, 2)
	pool("lock 2ms", 1, 2*ms, 0, 500*ms, 2, 5)
	pool("20 x 10ms slo 100ms", 20, 10*ms, 0, 100*ms, 2, 5)
	one := func(c Cell) { all = append(all, c) }
	one(Cell{ID: "cold start 4 x 50ms 5x", Conns: 4, Service: 50 * ms, SLO: 500 * ms,
		Phases: []Phase{{For: 8 * sec, Load: 5, Skip: 2 * sec, Good: .93, Denied: no}, {For: 6 * sec, Load: .85, Skip: 2 * sec, Good: .95, Denied: .01}}})
	one(Cell{ID: "60 x 300ms slo 1s 3x", Conns: 60, Service: 300 * ms, SLO: sec, Clients: patient(sec, 2*sec), Phases: overload(3, .01)})
	one(Cell{ID: "downstream queue 200 3x", Conns: 10, Service: 20 * ms, Queue: 200, SLO: 500 * ms, Phases: overload(3, .01)})
	one(Cell{ID: "hang 10s", Conns: 10, Service: 20 * ms, SLO: 500 * ms, Clients: patient(2*sec, 500*ms), Phases: []Phase{
		calm(5*sec, .6),
		{For: 10 * sec, Load: .6, Do: func(w *world) { w.frozen = true }, Good: no, Denied: no},
		{For: 8 * sec, Load: .6, Do: func(w *world) { w.frozen = false }, Skip: 3 * sec, Good: .95, Denied: .01}}})
	one(Cell{ID: "half hang", Conns: 0, Service: 2 * ms, Hits: .5, HitTime: 5 * ms, Hang: .5, SLO: 500 * ms, Clients: patient(500*ms, 2*sec), Phases: []Phase{
		{For: 5 * sec, Load: .5, Good: no, Denied: no}, {For: 15 * sec, Load: .5, Best: .5, Good: no, Denied: no}}})
	slower := func(name string, to float64, denied float64) {
		one(Cell{ID: name, Conns: 0, Service: 20 * ms, SLO: 500 * ms, Clients: patient(2 * sec), Phases: []Phase{
			calm(10*sec, 20), {For: 10 * sec, Load: 20, Do: func(w *world) { w.slow = to }, Good: no, Denied: denied},
			{For: 10 * sec, Load: 20, Good: no, Denied: .01}}})
	}
	slower("slower 20 to 150ms", 7.5, .05)
	slower("slower 20 to 400ms", 20, .10)
	one(Cell{ID: "work of 9s", Conns: 0, Service: 9 * sec, SLO: 20 * sec, Clients: patient(60 * sec), Phases: []Phase{calm(60*sec, 50)}})
	one(Cell{ID: "100 polls beside 10 x 20ms 3x", Conns: 10, Service: 20 * ms, Polls: 100, SLO: 500 * ms, Phases: append([]Phase{calm(25*sec, .85)}, overload(3, .01)...)})
	one(Cell{ID: "cache 90% hits, misses 3x", Conns: 4, Service: 50 * ms, Hits: .9, HitTime: ms, SLO: 500 * ms, Phases: []Phase{
		calm(5*sec, .85), {For: 8 * sec, Load: 3, Skip: sec, Good: .93, Best: .9 + .1/3, Denied: no},
		{For: 6 * sec, Load: .85, Skip: 2 * sec, Good: .95, Denied: .01}}})
	one(Cell{ID: "cache half hits 3x", Conns: 4, Service: 50 * ms, Hits: .5, HitTime: ms, SLO: 500 * ms, Phases: []Phase{
		calm(5*sec, .85), {For: 8 * sec, Load: 3, Skip: sec, Good: .90, Best: 1. / 3, Denied: no},
		{For: 6 * sec, Load: .85, Skip: 2 * sec, Good: .95, Denied: .01}}})
	one(Cell{ID: "step .3x to .9x, 150ms", Conns: 60, Service: 150 * ms, SLO: 500 * ms, Clients: patient(2 * sec), Phases: []Phase{
		calm(8*sec, .3), {For: 8 * sec, Load: .9, Good: no, Denied: 0}}})
	one(Cell{ID: "bursts of .2s, 20 x 10ms", Conns: 20, Service: 10 * ms, SLO: 500 * ms, Clients: patient(2 * sec), Phases: []Phase{
		calm(5*sec, .3), {For: 30 * sec, Load: .3, Burst: 200 * ms, Good: no, Denied: .001}}})
	one(Cell{ID: "capacity to a quarter", Conns: 20, Service: 10 * ms, SLO: 500 * ms, Phases: []Phase{
		calm(5*sec, .85), {For: 10 * sec, Load: .85, Do: func(w *world) { w.conns = 5 }, Skip: 2 * sec, Best: .25 / .85, Good: .93, Denied: no},
		{For: 6 * sec, Load: .85, Do: func(w *world) { w.conns = 20 }, Skip: 2 * sec, Good: .95, Denied: .01}}})
	for _, k := range []float64{4, 5, 8} {
		one(Cell{ID: fmt.Sprintf("connections %g times as slow", k), Conns: 20, Service: 20 * ms, SLO: 500 * ms, Clients: patient(500*ms, 2*sec), Phases: []Phase{
			calm(5*sec, .85), {For: 10 * sec, Load: .85, Do: func(w *world) { w.slow = k }, Skip: 2 * sec, Best: 1 / k / .85, Good: .93, Denied: no},
			{For: 6 * sec, Load: .85, Do: func(w *world) { w.slow = 1 }, Skip: 2 * sec, Good: .95, Denied: .01}}})
	}
	one(Cell{ID: "pool and processor by turns 2x", Conns: 10, Service: 20 * ms, SLO: 500 * ms, Phases: []Phase{
		calm(5*sec, .85), {For: 6 * sec, Load: 2, Skip: sec, Good: .93, Denied: no}, {For: 4 * sec, Load: .5, Good: no, Denied: no},
		{For: 8 * sec, Load: .8, Do: func(w *world) { w.cpu = 5 * ms }, Skip: 2 * sec, Best: 200. / 400, Good: .90, Denied: no},
		{For: 6 * sec, Load: .85, Do: func(w *world) { w.cpu = 0 }, Skip: 2 * sec, Good: .95, Denied: .01}}})
	return all
}

// Random is a cell that nothing was tuned on.
func Random(seed uint64) (Cell, Client) {
	rng := rand.New(rand.NewPCG(seed, 11))
	between := func(low, high float64) float64 { return low * math.Exp(rng.Float64()*math.Log(high/low)) }
	conns := int(between(1, 100))
	service := time.Duration(between(1, 200) * float64(ms))
	for float64(conns)/service.Seconds() > 5000 || float64(conns)/service.Seconds() < 20 {
		conns, service = int(between(1, 100)), time.Duration(between(1, 200)*float64(ms))
	}
	cv := []float64{0, 0, .5, 1, 2}[rng.IntN(5)]
	x := between(1.3, 10)
	denied := .01
	if cv > 0 {
		denied = .03
	}
	c := Cell{ID: fmt.Sprintf("random %d: %d x %v cv %g %.1fx", seed, conns, service.Round(ms/10), cv, x),
		Conns: conns, Service: service, CV: cv, SLO: 500 * ms, Phases: overload(x, denied)}
	return c, Client{time.Duration(between(.3, 2) * float64(sec)), rng.IntN(2) == 0}
}
