package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// caller is one of several that share a server.
type caller struct {
	tenant, priority string
	load             float64 // of the capacity
	cost             int     // of a request, in works; 0: 1
	names            int     // under which it sends; 0: 1
	blinks           int     // sends in every other second only, from this one on; 0: always

	asked, good float64 // work, after the warm-up
}

// send lets the senders overload the server for d by a Poisson process, after a
// second in which their limits learn.
func (r rig) share(all []*caller, capacity float64, warm, d time.Duration) {
	rates, sum := make([]float64, len(all)), 0.0
	for i, s := range all {
		sum += s.load * capacity / float64(max(s.cost, 1))
		rates[i] = sum
	}
	var mu sync.Mutex
	var calls sync.WaitGroup
	start := time.Now()
	for due := time.Duration(0); due < warm+d; due += time.Duration(rand.ExpFloat64() / sum * 1e9) {
		i, x := 0, rand.Float64()*sum
		for rates[i] < x {
			i++
		}
		s := all[i]
		if s.blinks > 0 && int(due.Seconds())%2 != s.blinks%2 {
			continue
		}
		time.Sleep(time.Until(start.Add(due)))
		tenant := s.tenant
		if s.names > 1 {
			tenant += strconv.Itoa(rand.IntN(s.names))
		}
		counted, cost := due >= warm, float64(max(s.cost, 1))
		calls.Go(func() {
			began := time.Now()
			good := r.send(tenant, s.priority, s.cost, r.patience) == http.StatusOK && time.Since(began) <= late
			if !counted {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			s.asked += cost
			if good {
				s.good += cost
			}
		})
	}
	calls.Wait()
}

const (
	warmUp    = 3 * time.Second
	mostNames = 10_000
)

// tenants is a flood of 4.5 capacities beside others, without and with fair shares.
func tenants(r rig) error {
	heads("Fair shares\n\nOne tenant floods with 4.5 times the capacity. Least served of its demand or its share within 500 ms, "+
		"Jain's index of the others, goodput of all.", "protocol", "others", "without", "with shares")
	r.work, r.procs = "5ms", 1
	d := max(length(), 5*time.Second)
	return overBoth(r, func(r rig, protocol string, rate float64) (err error) {
		for _, c := range tenantCells(protocol) {
			r, rate := r, rate
			if c.work != "" {
				r.work = c.work
				if rate, err = r.full(); err != nil {
					return err
				}
			}
			if err := r.cells(protocol+" | "+c.name, []string{"", "-shares"}, distinguish, func(r rig) (string, error) {
				all := c.senders()
				r.share(all, rate, warmUp, d)
				return fairness(all, c.share, rate*d.Seconds()), nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// tenantCell is a row: share is a sender's part of the capacity.
type tenantCell struct {
	name    string
	senders func() []*caller
	share   func(*caller) float64
	work    string // of a request; empty: that of all rows
}

func tenantCells(protocol string) (cells []tenantCell) {
	tenth := func(*caller) float64 { return .1 }
	beside := func(n int, make func(i int) *caller) func() []*caller {
		return func() []*caller {
			all := []*caller{{tenant: "flood", load: 4.5}}
			for i := range n {
				all = append(all, make(i))
			}
			return all
		}
	}
	cell := func(name string, senders func() []*caller, share func(*caller) float64) {
		cells = append(cells, tenantCell{name: name, senders: senders, share: share})
	}
	for _, part := range []float64{.1, .5, 1} {
		cell(fmt.Sprintf("nine, each %.1f of its tenth", part),
			beside(9, func(i int) *caller { return &caller{tenant: fmt.Sprint("t", i), load: part * .1} }), tenth)
	}
	if protocol == "gRPC" {
		return cells
	}
	weights := []float64{1, 2, 4}
	cell("nine of weights 1, 2, 4 (the flood 1), each .5 of its share", beside(9, func(i int) *caller {
		return &caller{tenant: fmt.Sprintf("t%d:%v", i, weights[i%3]), load: .5 * weights[i%3] / 22}
	}), func(s *caller) float64 { return s.load * 2 })
	dear := func(cost int) func() []*caller {
		return beside(9, func(i int) *caller {
			return &caller{tenant: fmt.Sprint("t", i), load: .05, cost: []int{1, 1, cost}[i%3]}
		})
	}
	cell("nine, each .5 of its tenth, of which three send requests of 20 works", dear(20), tenth)
	cell("the same with 100 works, each of 500 us", dear(100), tenth)
	cells[len(cells)-1].work = "500us"
	cell("1000 by Zipf, .5 of the capacity together", beside(1000, func(i int) *caller {
		return &caller{tenant: fmt.Sprint("t", i), load: .5 / 7.485 / float64(i+1)}
	}), func(s *caller) float64 { return s.load })
	cell("eighteen that appear and vanish every second, each .5 of its tenth", beside(18, func(i int) *caller {
		return &caller{tenant: fmt.Sprint("t", i), load: .05, blinks: 1 + i%2}
	}), tenth)
	cell("nine, each .5 of its tenth; the flood has 10 000 names", func() []*caller {
		all := []*caller{{tenant: "flood", load: 4.5, names: mostNames}}
		for i := range 9 {
			all = append(all, &caller{tenant: fmt.Sprint("t", i), load: .05})
		}
		return all
	}, tenth)
	return cells
}

// fairness returns the fairness among the senders except the first one, which
// floods. Senders with fewer than 20 requests are counted together.
func fairness(all []*caller, share func(*caller) float64, capacity float64) string {
	least, sum, squares, n, total := 1.0, 0.0, 0.0, 0.0, 0.0
	rest := &caller{}
	count := func(s *caller, may float64) {
		satisfied := s.good / min(s.asked, may)
		least, sum, squares, n = min(least, satisfied), sum+satisfied, squares+satisfied*satisfied, n+1
	}
	for i, s := range all {
		total += s.good
		switch {
		case i == 0 || s.asked == 0:
		case s.asked < 20*float64(max(s.cost, 1)):
			rest.asked, rest.good = rest.asked+s.asked, rest.good+s.good
		default:
			count(s, share(s)*capacity)
		}
	}
	if rest.asked > 0 {
		count(rest, math.Inf(1))
	}
	return fmt.Sprintf("%.2f, %.2f, %.2f", least, sum*sum/(n*squares), total/capacity)
}

// priorities is Critical at half of the capacity beside 4.5 capacities of Sheddable.
func priorities(r rig) error {
	heads("Classes\n\nCritical asks for half of the capacity, Sheddable for 4.5 times as much as there is. "+
		"Critical within 500 ms, goodput of all.", "protocol", "keys", "without", "with priorities")
	r.work, r.procs = "5ms", 1
	d := max(length(), 5*time.Second)
	return overBoth(r, func(r rig, protocol string, rate float64) error {
		for _, keys := range []string{"none", "one", "1000 users"} {
			if err := r.cells(protocol+" | "+keys, []string{"", "-classes"}, distinguish, func(r rig) (string, error) {
				critical, sheddable := caller{priority: "u=0", load: .5}, caller{priority: "u=7", load: 4.5}
				if keys != "none" {
					critical.tenant, sheddable.tenant = "user", "user"
				}
				if strings.HasPrefix(keys, "1000") {
					critical.names, sheddable.names = 1000, 1000
				}
				r.share([]*caller{&critical, &sheddable}, rate, warmUp, d)
				return fmt.Sprintf("%.3f, %.2f", critical.good/critical.asked, (critical.good+sheddable.good)/(rate*d.Seconds())), nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// overBoth measures over HTTP and over gRPC, each with its capacity.
func overBoth(r rig, table func(r rig, protocol string, rate float64) error) error {
	for _, r.limiter = range []string{"default", "default/grpc"} {
		rate, err := r.full()
		if err == nil {
			err = table(r, map[string]string{"http": "HTTP/1.1", "grpc": "gRPC"}[r.transport()], rate)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// distinguish starts the server with a flag, or without.
func distinguish(r *rig, flag string) {
	if flag != "" {
		r.args = []string{flag}
	}
}
