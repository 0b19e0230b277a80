package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sender is one of several that share a server.
type sender struct {
	tenant, priority string
	load             float64 // of the capacity
	cost             int     // of a request, in works; 0: 1
	names            int     // under which it sends; 0: 1
	blinks           int     // sends in every other second only, from this one on; 0: always

	asked, good float64 // work, after the warm-up
}

// send lets the senders overload the server for d by a Poisson process, after a
// second in which their limits learn.
func (r rig) send(all []*sender, capacity float64, warm, d time.Duration) {
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
			good := r.call(tenant, s.priority, s.cost) && time.Since(began) <= slo
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
	fmt.Print("\n## Fair shares\n\nOne tenant floods with 4.5 times the capacity. Least served of its demand or its share within 500 ms, ",
		"Jain's index of the others, goodput of all.\n\n| protocol | others | without | with shares |\n|---|---|---|---|\n")
	r.work, r.procs = "5ms", 1
	for _, r.protocol = range []string{"HTTP/1.1", "gRPC"} {
		rate, err := r.capacity()
		if err != nil {
			return err
		}
		for _, c := range tenantCells(r.protocol) {
			r, rate := r, rate
			if c.work != "" {
				r.work = c.work
				if rate, err = r.capacity(); err != nil {
					return err
				}
			}
			fmt.Printf("| %s | %s |", r.protocol, c.name)
			for _, args := range [][]string{nil, {"-shares"}} {
				r.limiter, r.args = "default", args
				if err := r.with(func(r rig) error {
					all := c.senders()
					r.send(all, rate, warmUp, max(length(), 5*time.Second))
					fmt.Print(" ", fairness(all, c.share, rate*max(length(), 5*time.Second).Seconds()), " |")
					return nil
				}); err != nil {
					return err
				}
			}
			fmt.Println()
		}
	}
	return nil
}

// tenantCell is a row: share is a sender's part of the capacity.
type tenantCell struct {
	name    string
	senders func() []*sender
	share   func(*sender) float64
	work    string // of a request; empty: that of all rows
}

func tenantCells(protocol string) (cells []tenantCell) {
	tenth := func(*sender) float64 { return .1 }
	beside := func(n int, make func(i int) *sender) func() []*sender {
		return func() []*sender {
			all := []*sender{{tenant: "flood", load: 4.5}}
			for i := range n {
				all = append(all, make(i))
			}
			return all
		}
	}
	cell := func(name string, senders func() []*sender, share func(*sender) float64) {
		cells = append(cells, tenantCell{name: name, senders: senders, share: share})
	}
	for _, part := range []float64{.1, .5, 1} {
		cell(fmt.Sprintf("nine, each %.1f of its tenth", part),
			beside(9, func(i int) *sender { return &sender{tenant: fmt.Sprint("t", i), load: part * .1} }), tenth)
	}
	if protocol == "gRPC" {
		return cells
	}
	weights := []float64{1, 2, 4}
	cell("nine of weights 1, 2, 4 (the flood 1), each .5 of its share", beside(9, func(i int) *sender {
		return &sender{tenant: fmt.Sprintf("t%d:%v", i, weights[i%3]), load: .5 * weights[i%3] / 22}
	}), func(s *sender) float64 { return s.load * 2 })
	dear := func(cost int) func() []*sender {
		return beside(9, func(i int) *sender {
			return &sender{tenant: fmt.Sprint("t", i), load: .05, cost: []int{1, 1, cost}[i%3]}
		})
	}
	cell("nine, each .5 of its tenth, of which three send requests of 20 works", dear(20), tenth)
	cell("the same with 100 works, each of 500 us", dear(100), tenth)
	cells[len(cells)-1].work = "500us"
	cell("1000 by Zipf, .5 of the capacity together", beside(1000, func(i int) *sender {
		return &sender{tenant: fmt.Sprint("t", i), load: .5 / 7.485 / float64(i+1)}
	}), func(s *sender) float64 { return s.load })
	cell("eighteen that appear and vanish every second, each .5 of its tenth", beside(18, func(i int) *sender {
		return &sender{tenant: fmt.Sprint("t", i), load: .05, blinks: 1 + i%2}
	}), tenth)
	cell("nine, each .5 of its tenth; the flood has 10 000 names", func() []*sender {
		all := []*sender{{tenant: "flood", load: 4.5, names: mostNames}}
		for i := range 9 {
			all = append(all, &sender{tenant: fmt.Sprint("t", i), load: .05})
		}
		return all
	}, tenth)
	return cells
}

// fairness returns the fairness among the senders except the first one, which
// floods. Senders with fewer than 20 requests are counted together.
func fairness(all []*sender, share func(*sender) float64, capacity float64) string {
	least, sum, squares, n, total := 1.0, 0.0, 0.0, 0.0, 0.0
	rest := &sender{}
	count := func(s *sender, may float64) {
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
	fmt.Print("\n## Classes\n\nCritical asks for half of the capacity, Sheddable for 4.5 times as much as there is. ",
		"Critical within 500 ms, goodput of all.\n\n| protocol | keys | without | with priorities |\n|---|---|---|---|\n")
	r.work, r.procs = "5ms", 1
	for _, r.protocol = range []string{"HTTP/1.1", "gRPC"} {
		rate, err := r.capacity()
		if err != nil {
			return err
		}
		for _, keys := range []string{"none", "one", "1000 users"} {
			fmt.Printf("| %s | %s |", r.protocol, keys)
			for _, args := range [][]string{nil, {"-classes"}} {
				r.limiter, r.args = "default", args
				if err := r.with(func(r rig) error {
					critical, sheddable := sender{priority: "u=0", load: .5}, sender{priority: "u=7", load: 4.5}
					if keys != "none" {
						critical.tenant, sheddable.tenant = "user", "user"
					}
					if strings.HasPrefix(keys, "1000") {
						critical.names, sheddable.names = 1000, 1000
					}
					d := max(length(), 5*time.Second)
					r.send([]*sender{&critical, &sheddable}, rate, warmUp, d)
					fmt.Printf(" %.3f, %.2f |", critical.good/critical.asked, (critical.good+sheddable.good)/(rate*d.Seconds()))
					return nil
				}); err != nil {
					return err
				}
			}
			fmt.Println()
		}
	}
	return nil
}
