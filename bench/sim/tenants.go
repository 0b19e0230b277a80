package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Tenant is one of the tenants that share the load.
type Tenant struct {
	// Load is the processor time that the tenant asks for during the overload, in
	// capacities.
	Load float64
	// Cost is the processor time of its requests, as a multiple of the
	// service's; 0 means 1.
	Cost   float64
	Weight float64 // 0: 1
	// Names is the number of names under which it sends; 0: 1.
	Names int
	// Blinks is a tenant that sends in every other second only, at twice the rate.
	Blinks bool
	// From is when the first tenant begins to send; before, the others do in its place.
	From time.Duration
}

func (t *Tenant) cost() float64   { return cmp.Or(t.Cost, 1) }
func (t *Tenant) weight() float64 { return cmp.Or(t.Weight, 1) }

// Crowd draws the tenants of requests.
type Crowd struct {
	tenants []Tenant
	sums    []float64
}

// NewCrowd is of all that share a load.
func NewCrowd(tenants []Tenant) *Crowd {
	c := &Crowd{tenants: tenants}
	sum := 0.0
	for i := range tenants {
		sum += tenants[i].Load / tenants[i].cost()
		c.sums = append(c.sums, sum)
	}
	return c
}

// Requests is how many all send while a server of one capacity can serve one of cost 1.
func (c *Crowd) Requests() float64 { return c.sums[len(c.sums)-1] }

// Draw is the tenant of a request at an instant, and the name under which it sends.
func (c *Crowd) Draw(rng *rand.Rand, at time.Duration) (i int, name string) {
	i, _ = slices.BinarySearch(c.sums, rng.Float64()*c.Requests())
	if at < c.tenants[i].From {
		i = 1 + rng.IntN(len(c.tenants)-1)
	}
	if c.tenants[i].Blinks && (int(at/sec)+i)%2 == 0 { // its neighbour is there instead
		i = (i+1)/2*4 - 1 - i
	}
	name = "tenant-" + strconv.Itoa(i)
	if n := c.tenants[i].Names; n > 1 {
		name += "-" + strconv.Itoa(rng.IntN(n))
	}
	return i, name
}

// use is the demand of a tenant and its admitted part.
type use struct {
	asked, served float64
	seconds       []float64 // served in each second of the run
}

// ofTenant draws the tenant of a request.
func (w *world) ofTenant(r *request, at int64) {
	if w.crowd == nil {
		return
	}
	r.tenant, r.name = w.crowd.Draw(w.rng, time.Duration(at))
	r.left = int64(float64(r.left) * w.Tenants[r.tenant].cost())
	r.work = float64(r.left)
}

func (s *stats) ask(r *request) {
	if s.tenants != nil {
		s.tenants[r.tenant].asked += r.work
	}
}

func (s *stats) serve(w *world, r *request) {
	if s.tenants == nil {
		return
	}
	t := &s.tenants[r.tenant]
	t.seconds[w.now/int64(sec)] += r.work
	if w.inside(r.born) {
		t.served += r.work
	}
}

// weightOf is the weight of the tenant with a name.
func (w *world) weightOf(name string) float64 {
	var i int
	if _, err := fmt.Sscanf(name, "tenant-%d", &i); err != nil {
		panic(err)
	}
	return w.Tenants[i].weight()
}

// Share is a tenant's part of the capacity.
type Share struct {
	Asked, Served float64 // answered within the SLO; in capacities
	Fair          float64 // the lesser of the demand and the weighted max-min share of all that was served
	// Seconds is the work served in each second of the run, in capacities.
	Seconds []float64
}

// Satisfied is the part of the fair share that the tenant got; more than that counts
// as 1.
func (s Share) Satisfied() float64 {
	if s.Fair == 0 {
		return 1
	}
	return min(s.Served/s.Fair, 1)
}

func (w *world) shares() []Share {
	capacity := w.cores() * float64(w.To-w.From)
	all := make([]Share, len(w.stats.tenants))
	for i, u := range w.stats.tenants {
		all[i] = Share{Asked: u.asked / capacity, Served: u.served / capacity}
		for _, second := range u.seconds {
			all[i].Seconds = append(all[i].Seconds, second/w.cores()/float64(sec))
		}
	}
	Divide(w.Tenants, all)
	return all
}

// Divide sets the fair shares of tenants that asked for parts of the capacity and were served.
func Divide(tenants []Tenant, all []Share) {
	served := 0.0
	for i := range all {
		served += all[i].Served
	}
	fair := func(i int, level float64) float64 { return min(all[i].Asked, level*tenants[i].weight()) }
	low, high := 0.0, served // the share for weight 1 at which the fair ones are all that was served
	for range 60 {
		level, sum := (low+high)/2, 0.0
		for i := range all {
			sum += fair(i, level)
		}
		if sum > served {
			high = level
		} else {
			low = level
		}
	}
	for i := range all {
		all[i].Fair = fair(i, high)
	}
}

// Jain is Jain's index of fairness: 1 if all are equal, 1/n if one has everything.
func Jain(xs []float64) float64 {
	var sum, squares float64
	for _, x := range xs {
		sum, squares = sum+x, squares+x*x
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(xs)) * squares)
}

// Fairness is how the capacity was divided.
type Fairness struct {
	Jain  float64 // of the satisfied shares
	Least float64 // satisfied share
	All   float64 // that was served, in capacities
}

// Divided judges the shares of a run.
func Divided(all []Share) (f Fairness) {
	xs := make([]float64, len(all))
	for i, s := range all {
		xs[i] = s.Satisfied()
		f.All += s.Served
	}
	f.Jain, f.Least = Jain(xs), slices.Min(xs)
	return f
}

// flood is a tenant that asks for 4.5 capacities beside nine that ask for x of a tenth
// each.
func flood(x float64) []Tenant {
	all := []Tenant{{Load: 4.5}}
	for range 9 {
		all = append(all, Tenant{Load: x / 10})
	}
	return all
}

// zipf is n tenants with a total load, the k-th with 1/k of the first.
func zipf(n int, load float64) []Tenant {
	sum := 0.0
	for k := range n {
		sum += 1 / float64(k+1)
	}
	all := make([]Tenant, n)
	for k := range all {
		all[k].Load = load / float64(k+1) / sum
	}
	return all
}

// sets are the ways in which tenants share a load. In each the first one floods.
func sets() []Scenario {
	weighted := []Tenant{{Load: 2, Weight: 1}, {Load: 2, Weight: 2}, {Load: 2, Weight: 4}, {Load: .1, Weight: 1}}
	costly := []Tenant{{Load: 2.5, Cost: 100}}
	blinking := []Tenant{{Load: 3}}
	spread := []Tenant{{Load: 4.5, Names: 10_000}}
	for range 10 {
		costly = append(costly, Tenant{Load: .05})
		blinking = append(blinking, Tenant{Load: .05, Blinks: true})
		spread = append(spread, Tenant{Load: .05})
	}
	return []Scenario{
		{ID: "flood.1", About: "one floods, nine ask for .1 of a tenth", Tenants: flood(.1)},
		{ID: "flood.5", About: "one floods, nine ask for .5 of a tenth", Tenants: flood(.5)},
		{ID: "flood1", About: "one floods, nine ask for a tenth", Tenants: flood(1)},
		{ID: "weights", About: "weights 1, 2, 4, each asks for 2; a small one", Tenants: weighted},
		{ID: "costs", About: "one floods with requests 100 times as costly as ten others'", Tenants: costly},
		{ID: "zipf", About: "1000 tenants by Zipf, 5x", Tenants: zipf(1000, 5)},
		{ID: "blink", About: "one floods, ten others appear and vanish every second", Tenants: blinking},
		{ID: "names", About: "one floods under 10 000 names", Tenants: spread},
	}
}

// Shared are the scenarios with tenants, on a Go server with a number of cores and
// handlers that need that processor time: 5 s of calm, then overload.
func Shared(cores int, cpu, slo time.Duration) []Scenario {
	all := sets()
	for i := range all {
		s := &all[i]
		s.Model, s.Host, s.Service = GoScheduler{}, Host{Cores: cores}, Service{CPU: cpu}
		s.Admit, s.Reject, s.Patience, s.SLO = 25*us, 13*us, 2*sec, slo
		if s.ID == "costs" { // between a tenth and ten times of it
			s.Service.CPU, s.SLO = cpu/10, max(slo, 30*cpu)
		}
		requests := NewCrowd(s.Tenants).Requests()
		easy := calm * requests / max(requests, demand(s.Tenants))
		s.Load = Load{{5 * sec, easy, easy}, {40 * sec, requests, requests}}
		s.From, s.To = 15*sec, 40*sec
	}
	return all
}

// Beginning is a flood that begins after 10 s.
func Beginning() Scenario {
	s := Shared(1, 5*ms, 250*ms)[1]
	s.Tenants[0].From = 10 * sec
	s.Load = Load{{10 * sec, .45, .45}, {40 * sec, demand(s.Tenants), demand(s.Tenants)}}
	return s
}

func demand(all []Tenant) (sum float64) {
	for i := range all {
		sum += all[i].Load
	}
	return sum
}
