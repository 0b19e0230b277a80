package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/bench/sim"
)

const learning = 3 * time.Second

// tenants are the tenants of the simulator in front of a server, without and with fair shares.
func tenants(r rig) {
	heads("Fair shares\n\nTenants of the simulator (make sim SIM=fairness), answers within 500 ms: the smallest part that one got of the lesser of its demand "+
		"and its share of all that was served, Jain's index over these parts, the part of the capacity that was served. Tenants with fewer than 20 requests count as one.",
		"protocol", "tenants", "without", "with shares")
	r.procs = 1
	d := max(length(), 5*time.Second)
	for _, protocol := range []string{"HTTP/1.1", "gRPC"} {
		for _, s := range sim.Shared(1, 5*time.Millisecond, late) {
			r.limiter, r.work = "default", s.Service.CPU.String()
			if protocol == "gRPC" {
				if r.limiter = "default/grpc"; !strings.HasPrefix(s.ID, "flood") {
					continue
				}
			}
			rate := r.full()
			r.cells(protocol+" | "+s.About, []string{"", "-shares"}, distinguish, func(r rig) (string, error) {
				f := sim.Divided(r.share(s.Tenants, rate, d))
				return fmt.Sprintf("%.2f, %.2f, %.2f", f.Least, f.Jain, f.All), nil
			})
		}
	}
}

// distinguish starts the server with a flag, or without.
func distinguish(r *rig, flag string) {
	if flag != "" {
		r.args = []string{flag}
	}
}

// share lets tenants send by a Poisson process, for a time in which the limits learn and then for d,
// and returns the parts of d that they got.
func (r rig) share(tenants []sim.Tenant, capacity float64, d time.Duration) []sim.Share {
	crowd, rng := sim.NewCrowd(tenants), rand.New(rand.NewPCG(*seed, 1))
	parts, counts := make([]sim.Share, len(tenants)), make([]int, len(tenants))
	var mu sync.Mutex
	var calls sync.WaitGroup
	start := time.Now()
	for due := time.Duration(0); due < learning+d; due += time.Duration(rng.ExpFloat64() / (crowd.Requests() * capacity) * 1e9) {
		time.Sleep(time.Until(start.Add(due)))
		i, name := crowd.Draw(rng, due)
		t := &tenants[i]
		calls.Go(func() {
			began := time.Now()
			good := r.send(fmt.Sprintf("%s:%v", name, max(t.Weight, 1)), int(t.Cost), r.patience) == http.StatusOK && time.Since(began) <= late
			if due < learning {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			part := max(t.Cost, 1) / capacity / d.Seconds()
			counts[i]++
			parts[i].Asked += part
			if good {
				parts[i].Served += part
			}
		})
	}
	calls.Wait()
	return divided(tenants, parts, counts)
}

// divided are the parts with their fair shares, those of few requests as one.
func divided(tenants []sim.Tenant, parts []sim.Share, counts []int) []sim.Share {
	var large []sim.Tenant
	var all []sim.Share
	var rest sim.Share
	for i, p := range parts {
		if counts[i] >= 20 {
			large, all = append(large, tenants[i]), append(all, p)
			continue
		}
		rest.Asked, rest.Served = rest.Asked+p.Asked, rest.Served+p.Served
	}
	if few := len(parts) - len(all); few > 0 {
		large, all = append(large, sim.Tenant{Weight: float64(few)}), append(all, rest)
	}
	sim.Divide(large, all)
	return all
}
