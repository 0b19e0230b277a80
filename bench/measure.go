package main

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"
)

// contender is one library on one piece of work.
type contender struct {
	name string
	kind kind

	// run makes n decisions and returns how many were admitted. It is safe to
	// call from several goroutines. The loop is inside, so that no contender
	// pays for an indirect call that another does not.
	run func(n int) (admitted int)
}

// kind is the role of a contender in its group.
type kind uint8

const (
	peer  kind = iota
	floor      // the cost that every limiter has; the first of each group
	ours
)

// work is a group of contenders that do the same.
type work struct {
	id, title string
	cores     int
	callers   int    // goroutines; 0: as many as cores
	denied    bool   // every decision is a denial, not an admission
	us        string // which of ours the peers are compared with
	warm      int    // decisions before each sample, to fill the caches
	slow      bool   // fewer and longer samples: a decision takes microseconds
	over      bool   // the time over the floor counts, not its multiple
	make      func() []contender
	end       func() // stops the goroutines and servers of the contenders; may be nil
}

// plan is how much to measure.
type plan struct {
	rounds int
	sample time.Duration // of one contender in one round
}

// row has the measurements of one contender.
type row struct {
	contender
	ns     []float64 // a decision, by round
	allocs float64   // a decision
	bytes  float64
}

func (r row) median() float64 { return median(r.ns) }

// result is a group with its rows, the floor first.
type result struct {
	work
	rows []row
}

func (r result) floor() row { return r.rows[0] }

// row returns the row of the contender with that name.
func (r result) row(name string) (row, bool) {
	for _, x := range r.rows {
		if x.name == name {
			return x, true
		}
	}
	return row{}, false
}

// overFloor compares x with the floor of the same round: as a multiple, or as
// nanoseconds more where the floor is a handler that does nothing.
func (r result) overFloor(x row) float64 {
	if r.over {
		return paired(x.ns, r.floor().ns, difference)
	}
	return paired(x.ns, r.floor().ns, quotient)
}

// overUs is how many times longer x takes than ours does.
func (r result) overUs(x row) float64 {
	us, ok := r.row(r.us)
	if !ok {
		return math.NaN()
	}
	return r.versus(x, us)
}

// versus is how many times longer x takes than y, both without the handler
// where there is one.
func (r result) versus(x, y row) float64 {
	if r.over {
		return r.overFloor(x) / r.overFloor(y)
	}
	return paired(x.ns, y.ns, quotient)
}

// measure runs the contenders of w in turns. In each round another one begins,
// so that none always follows the same neighbor.
func measure(w work, p plan) (result, error) {
	if w.slow {
		p = plan{rounds: max(p.rounds/2, 2), sample: 4 * p.sample}
	}
	contenders := w.make()
	if w.end != nil {
		defer w.end()
	}
	res := result{work: w, rows: make([]row, len(contenders))}
	sizes := make([]int, len(contenders))
	for i, c := range contenders {
		res.rows[i].contender = c
		sizes[i] = w.calibrate(c, p.sample)
	}
	for round := range p.rounds {
		for k := range contenders {
			i := (round + k) % len(contenders)
			ns, err := w.sample(contenders[i], sizes[i])
			if err != nil {
				return res, err
			}
			res.rows[i].ns = append(res.rows[i].ns, ns)
		}
	}
	for i, c := range contenders {
		n := 4096
		if w.slow {
			n = 256
		}
		res.rows[i].allocs, res.rows[i].bytes = allocations(c, n)
	}
	return res, nil
}

// calibrate finds how many decisions take about as long as a sample should.
func (w work) calibrate(c contender, sample time.Duration) int {
	for n := 256; ; n *= 2 {
		if _, took := w.drive(c, n); took > sample/8 || n > 1<<28 {
			return max(int(float64(n)*float64(sample)/float64(took)), 256)
		}
	}
}

// sample times n decisions in all, and returns the wall time of one. The garbage
// of others is collected first, and the caches are warmed again, so each
// contender's time includes its own garbage.
func (w work) sample(c contender, n int) (ns float64, err error) {
	sweep()
	c.run(max(n/16, w.warm))
	admitted, took := w.drive(c, n)
	each := w.each(n)
	for _, a := range admitted {
		if err := w.verify(c, a, each); err != nil {
			return 0, err
		}
	}
	return float64(took) / float64(each*len(admitted)), nil
}

// drive lets the callers of the work make n decisions in all, on its cores, and
// returns how many of each were admitted.
func (w work) drive(c contender, n int) (admitted []int, took time.Duration) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(w.cores))
	admitted = make([]int, max(w.callers, w.cores))
	each := w.each(n)
	var all sync.WaitGroup
	start := time.Now()
	for g := range admitted[1:] {
		all.Go(func() { admitted[g+1] = c.run(each) })
	}
	admitted[0] = c.run(each)
	all.Wait()
	return admitted, time.Since(start)
}

// each is how many of n decisions one caller makes.
func (w work) each(n int) int { return max(n/max(w.callers, w.cores), 1) }

// alive is the live memory after the last sweep.
var alive uint64

// sweep collects garbage if there is much: collecting a large heap of others
// takes longer than a sample.
func sweep() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > alive+alive/4+4<<20 {
		runtime.GC()
		runtime.ReadMemStats(&m)
		alive = m.HeapAlloc
	}
}

// verify refuses figures of a contender that did something else than its work.
func (w work) verify(c contender, admitted, n int) error {
	want := n
	if w.denied {
		want = 0
	}
	if admitted != want {
		return fmt.Errorf("%s: %s admitted %d of %d, want %d", w.id, c.name, admitted, n, want)
	}
	return nil
}

// allocations counts the allocations of one decision, in n of them. The least of several counts is
// taken: goroutines in the background allocate too.
func allocations(c contender, n int) (allocs, bytes float64) {
	c.run(n)
	allocs, bytes = math.Inf(1), math.Inf(1)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c.run(n)
		runtime.ReadMemStats(&after)
		allocs = min(allocs, float64(after.Mallocs-before.Mallocs)/float64(n))
		bytes = min(bytes, float64(after.TotalAlloc-before.TotalAlloc)/float64(n))
	}
	return math.Round(allocs*100) / 100, math.Round(bytes)
}
