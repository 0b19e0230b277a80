package pools

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/adaptive"
)

// tally counts the requests of a phase by when they were sent.
type tally struct {
	from                int64 // after the part that is not judged
	all, no, ok         int
	first               int64 // end of the first second, and the answers sent in it
	firstGood, firstAll int
	classes             map[adaptive.Class]*[2]int
	tenants             map[string]*[2]int
}

func (t *tally) arrived(r *request, at int64) {
	if at >= t.from {
		t.all++
		t.count(r, 0)
	}
	if at < t.first {
		t.firstAll++
	}
}

func (t *tally) denied(born int64) {
	if born >= t.from {
		t.no++
	}
}

// count counts requests and good answers by class and by tenant.
func (t *tally) count(r *request, i int) {
	if t.classes == nil {
		t.classes, t.tenants = map[adaptive.Class]*[2]int{}, map[string]*[2]int{}
	}
	if t.classes[r.class] == nil {
		t.classes[r.class] = new([2]int)
	}
	if t.tenants[r.tenant] == nil {
		t.tenants[r.tenant] = new([2]int)
	}
	t.classes[r.class][i]++
	t.tenants[r.tenant][i]++
}

func (t *tally) good(r *request) {
	if r.born >= t.from {
		t.ok++
		t.count(r, 1)
	}
	if r.born < t.first {
		t.firstGood++
	}
}

// Row is what became of a phase: good answers of the best possible, and denied requests of all.
type Row struct {
	Good, Denied, First float64
	classes             map[adaptive.Class]*[2]int
	tenants             map[string]*[2]int
}

// Run plays a cell.
func Run(t *testing.T, c Cell, by Limiter, client Client, seed uint64) (rows []Row) {
	t.Helper()
	play := func(t *testing.T) {
		w := &world{
			Cell: &c, Client: client, rng: rand.New(rand.NewPCG(seed, 7)), conns: c.Conns, slow: 1, living: map[*request]bool{},
		}
		if by.Bubble {
			w.sleep = time.Sleep
		}
		w.remake = func() gate {
			g, err := by.make(w)
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		w.gate = w.remake()
		rows = w.play()
	}
	if by.Bubble {
		synctest.Test(t, play)
	} else {
		play(t)
	}
	return rows
}

func (w *world) play() (rows []Row) {
	for range w.Polls {
		w.tally = new(tally)
		w.arrive(&request{poll: true})
	}
	var tallies []*tally
	for i := range w.Phases {
		p := &w.Phases[i]
		until := w.now + int64(p.For)
		w.tally = &tally{from: w.now + int64(p.Skip), first: w.now + int64(time.Second)}
		tallies = append(tallies, w.tally)
		if p.Do != nil {
			p.Do(w)
			w.serve()
		}
		w.arrivals(p, until)
		w.run(until)
	}
	w.run(w.now + int64(10*time.Second))
	for i, t := range tallies {
		p := &w.Phases[i]
		best := p.Best
		if best == 0 {
			best = min(1/p.Load, 1)
		}
		rows = append(rows, Row{
			Good:    float64(t.ok) / float64(max(t.all, 1)) / best,
			Denied:  float64(t.no) / float64(max(t.all, 1)),
			First:   float64(t.firstGood) / float64(max(t.firstAll, 1)) / best,
			classes: t.classes, tenants: t.tenants,
		})
	}
	return rows
}
