package pools

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// History is a service with a past: phases of load steps, stalls, slow connections, hangs and restarts,
// and then a stationary load that is judged.
type History struct {
	Cell
	Client
	Past     []Phase
	Load     float64 // of the capacity, in the end
	Judged   time.Duration
	Fuzz     bool // the limiter's own state is fuzzed before the end
	Required float64
}

const settles = 15 * time.Second // from any history to good

// RandomHistory is a history of the class that Default promises to heal from: at least 20 ends within the
// target, of a mean time of a 500th to a half of it.
func RandomHistory(seed uint64) History {
	rng := rand.New(rand.NewPCG(seed, 23))
	between := func(low, high float64) float64 { return low * math.Exp(rng.Float64()*math.Log(high/low)) }
	h := History{Judged: 30 * sec, Required: .93}
	h.Target = time.Duration([]float64{.1, .25, .5, .5, 1, 2}[rng.IntN(6)] * float64(sec))
	h.SLO = h.Target
	h.Service = max(time.Duration(between(1./500, .5)*float64(h.Target)), ms/2)
	uneven := false
	switch rng.IntN(6) {
	case 0:
	case 1, 2:
		h.CV = 1 // exponential
		uneven = true
	case 3, 4:
		h.CV, uneven = between(.3, 3), true
	case 5:
		h.Slow, h.Times, uneven = between(.02, .5), between(10, 100), true
	}
	bottleneck := rng.IntN(5) > 0
	if bottleneck {
		for h.Conns = int(between(1, 200)); float64(h.Conns)*h.Target.Seconds()/h.Service.Seconds() < 20 || h.capacity() > 1500; {
			h.Conns = int(between(1, 200))
			if h.capacity() > 1500 {
				h.Service = time.Duration(between(1./500, .5) * float64(h.Target))
			}
		}
		if rng.IntN(5) == 0 {
			h.Queue = int(between(5, 500))
		}
	}
	if h.Load = between(.1, 10); !bottleneck {
		h.Load = max(between(20, 2000)/h.Target.Seconds()*h.Service.Seconds(), 1e-3) // ends within the target
	}
	h.Load = min(h.Load, 4000/h.capacity())
	patience := []time.Duration{300 * ms, sec, 2 * sec, 10 * sec, time.Hour}[rng.IntN(5)]
	h.Client = Client{max(patience, 3*h.Service), rng.IntN(2) == 0}
	if bottleneck && uneven && h.Conns <= 12 {
		h.Required = .85
	}
	h.past(rng, bottleneck)
	h.Fuzz = rng.IntN(2) == 0
	h.ID = fmt.Sprintf("%d: T %v, %d x %v cv %.1f slow %.2f times %.0f queue %d, %.2fx, clients %v obey %v",
		seed, h.Target, h.Conns, h.Service.Round(ms/10), h.CV, h.Slow, h.Times, h.Queue, h.Load, patience, h.Obeys)
	return h
}

// past draws a minute of the past.
func (h *History) past(rng *rand.Rand, bottleneck bool) {
	between := func(low, high float64) float64 { return low * math.Exp(rng.Float64()*math.Log(high/low)) }
	load := func() float64 {
		if !bottleneck {
			return h.Load * between(.3, 2)
		}
		return min(between(.2, 3), 4000/h.capacity())
	}
	healthy := func(w *world) { w.frozen, w.slow = false, 1 }
	last := load()
	if rng.IntN(2) == 0 {
		h.Past = append(h.Past, Phase{For: time.Duration(between(.1, 5) * float64(sec)), Load: last, Do: func(w *world) { w.frozen = true }})
	}
	for left := 60 * sec; left > 0; {
		p := Phase{For: time.Duration(between(1, 20) * float64(sec)), Load: last, Do: healthy}
		switch rng.IntN(6) {
		case 0, 1:
			last = load()
			p.Load = last
		case 2:
			p.For = min(p.For, 10*sec)
			p.Do = func(w *world) { w.frozen = true }
		case 3:
			slow := between(2, 20)
			p.Do = func(w *world) { w.frozen, w.slow = false, slow }
		case 4:
			p.Do = func(w *world) { healthy(w); w.restart() }
		}
		left -= p.For
		h.Past = append(h.Past, p)
	}
}

// phases are the past, and the stationary load that is judged once 15 s of it are over.
func (h *History) phases() []Phase {
	return append(append([]Phase(nil), h.Past...), Phase{For: settles + h.Judged, Skip: settles, Load: h.Load, Best: 1,
		Do: func(w *world) {
			w.frozen, w.slow = false, 1
			if h.Fuzz && w.fuzz != nil {
				w.fuzz()
			}
		}})
}

// restart replaces the process: what it had begun is lost, its limiter knows nothing.
func (w *world) restart() {
	for r := range w.living {
		r.ended, r.gone, r.inPool = true, true, false
	}
	clear(w.living)
	w.waiting, w.runQueue, w.busy, w.open = nil, nil, 0, 0
	w.gate = w.remake()
}

// oracle admits a request if it knows that a connection will be free soon enough: the wait of the
// request, but not the time that it will take.
type oracle struct {
	w    *world
	most int64 // wait, ns
	free times // instants at which the connections will be
}

type times []int64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(int64)) }
func (t *times) Pop() any          { panic("never shrinks") }

func (*oracle) gone() {}

func (o *oracle) enter(r *request) func(algo.Outcome) {
	if o.w.conns == 0 || r.service < 0 {
		return func(algo.Outcome) {}
	}
	for len(o.free) < o.w.conns {
		heap.Push(&o.free, int64(0))
	}
	begins := max(o.free[0], o.w.now)
	if begins-o.w.now > o.most || o.w.Queue > 0 && len(o.w.waiting) >= o.w.Queue {
		return nil
	}
	o.free[0] = begins + r.service
	heap.Fix(&o.free, 0)
	return func(algo.Outcome) {}
}

// possible is the best that an admission serves in time, as a share of all requests.
func (h *History) possible(run func(Limiter, []Phase) Row) (best float64) {
	if h.Conns == 0 {
		return run(Limiter{Name: "none", make: func(*world) (gate, error) { return open{}, nil }}, h.phases()[len(h.Past):]).Good
	}
	bound := min(h.SLO, h.Patience)
	for _, part := range []float64{.1, .4} {
		by := Limiter{Name: "oracle", make: func(w *world) (gate, error) {
			return &oracle{w: w, most: int64(part * float64(bound))}, nil
		}}
		last := h.phases()[len(h.Past)]
		last.For, last.Skip = 5*sec+h.Judged, 5*sec
		best = max(best, run(by, []Phase{last}).Good)
	}
	return best
}

// fuzz moves every number that the second strategy of Default has learned: a self-stabilising limiter heals
// from any state, not only from those that a history makes.
func fuzz(w *world, s reflect.Value) {
	half := s.Elem().FieldByName("all").Index(1).Elem()
	fuzzFields(w, half.Elem())
}

func fuzzFields(w *world, v reflect.Value) {
	v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	switch v.Kind() {
	case reflect.Float64:
		if w.rng.IntN(2) == 0 {
			v.SetFloat(v.Float() * math.Exp(2*w.rng.NormFloat64()))
		}
	case reflect.Bool:
		v.SetBool(w.rng.IntN(2) == 0)
	case reflect.Int64: // an instant, or a duration
		if x := v.Int(); x > origin/2 && x < math.MaxInt64/2 && w.rng.IntN(2) == 0 {
			v.SetInt(x - int64(w.rng.ExpFloat64()*10e9))
		}
	case reflect.Array:
		for i := range v.Len() {
			fuzzFields(w, v.Index(i))
		}
	case reflect.Struct:
		if p := v.Type().PkgPath(); strings.HasPrefix(p, "sync") || p != "" && !strings.Contains(p, "sluice") {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "target" { // a setting
				continue
			}
			fuzzFields(w, v.Field(i))
		}
	}
}

// verdict is how good the end of a history is: 1 as good as required or better, 0 nothing.
type verdict struct {
	name                   string
	good, denied, possible float64
	ok                     bool
}

func (v verdict) String() string {
	return fmt.Sprintf("%.2f of the possible (%.2f), %.1f %% denied: %s", v.good, v.possible, 100*v.denied, v.name)
}

func (h *History) judge(t *testing.T, by Limiter) verdict {
	play := func(by Limiter, phases []Phase) Row {
		c := h.Cell
		c.Phases = phases
		rows := Run(t, c, by, h.Client, 1)
		return rows[len(rows)-1]
	}
	r, best := play(by, h.phases()), h.possible(play)
	v := verdict{h.ID, r.Good / max(best, 1e-9), r.Denied, best, true}
	v.ok = v.good >= h.Required
	switch {
	case h.Conns == 0:
		v.ok = v.ok && v.denied <= .003
	case h.Load <= .85:
		v.ok = v.ok && v.denied <= .01
	}
	return v
}

// TestHistories: from any history, and from any state of its own, Default is good within 15 s and stays so,
// in 282 of 300 at least, and below half of what is possible in 3 at most (today 288 and one; aims: 290, and none). 3000 with
// SLUICE_LONG.
func TestHistories(t *testing.T) {
	n := uint64(300)
	switch {
	case os.Getenv("SLUICE_LONG") != "":
		n = 3000
	case testing.Short(): // make check
		n = 100
	}
	all := make([]verdict, n)
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1) - 1; seed < n; seed = next.Add(1) - 1 {
				h := RandomHistory(seed)
				all[seed] = h.judge(t, ours())
			}
		})
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b verdict) int { return int(math.Copysign(1, a.good-b.good)) })
	good, half := 0, 0
	for _, v := range all {
		if v.ok {
			good++
		} else {
			t.Log(v)
		}
		if v.good < .5 {
			half++
		}
	}
	t.Logf("%d of %d histories good, %d below half", good, n, half)
	require.GreaterOrEqual(t, float64(good), .93*float64(n))
	require.LessOrEqual(t, float64(half), .01*float64(n))
}
