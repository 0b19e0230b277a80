// Command overload measures the part of a real server's capacity that limiters
// keep under far higher demand: a server process on one core, an open-loop load
// generator on another, clients that give up. It prints a line for each cell
// and writes them to a file, from which -report makes the page.
package main

import (
	"errors"
	"flag"
	"runtime/debug"
	"strings"
	"time"
)

var (
	bin      = flag.String("server", "", "the server's program")
	works    = flag.String("work", "500us,5ms,30ms", "handlers: processor time, +waiting; or mix")
	loads    = flag.String("loads", "0.85,2,5,10", "of the capacity; below 1: without a step")
	limiters = flag.String("limiter", "none,default", "limiters, with /listener at the socket, with /grpc or /tap over gRPC")
	seconds  = flag.Float64("seconds", 6, "length of the overload")
	records  = flag.String("json", "", "append the figures to this file")
	whole    = flag.Bool("matrix", false, "all that the page shows; -work, -limiter, -loads restrict it")
	seed     = flag.Uint64("seed", 1, "of the arrivals")
	page     = flag.String("report", "", "measure nothing; write the page and the plot of the figures in -json into this directory")
)

func main() {
	flag.Parse()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(6 << 30)
	err := error(nil)
	if *page != "" {
		err = report(*records, *page)
	} else {
		err = run()
	}
	if err != nil {
		stop(err)
	}
}

// capacities are measured once for each handler and transport.
var capacities = map[string]figures{}

// capacity is the throughput of the handler without a limiter, in a closed
// loop.
func (r rig) capacity() (figures, error) {
	key := r.work + r.transport()
	if f, known := capacities[key]; known {
		return f, nil
	}
	f := figures{Work: r.work, Transport: r.transport()}
	bare := r
	bare.limiter = "none" + strings.TrimPrefix(r.limiter, r.name())
	err := bare.with(func(t target) (err error) {
		n := 8
		if strings.Contains(r.work, "+") || r.work == "proxy" {
			n = 100
		}
		if _, _, err = t.closed(n, 500*time.Millisecond); err != nil {
			return err
		}
		start := time.Now()
		ok, _, err := t.closed(n, 3*time.Second)
		f.Capacity = float64(ok) / time.Since(start).Seconds()
		if err == nil && ok == 0 {
			err = errors.New("the server without a limiter answered nothing")
		}
		return err
	})
	if err == nil {
		capacities[key] = f
	}
	return f, err
}

// prices are measured once for each handler and kind of server.
var prices = map[string]float64{}

// priceRejections measures the processor time of a rejection in a server that
// rejects everything: in a closed loop over as many connections as Go's poller
// hands out at a time, where nothing ever waits for a wakeup, and so at its
// cheapest.
func (f *figures) priceRejections(r rig) error {
	kind := strings.TrimPrefix(r.limiter, r.name())
	r.limiter = "rejects" + kind
	var known bool
	if f.RejectCost, known = prices[r.work+kind]; known {
		return nil
	}
	err := r.with(func(t target) error {
		if _, _, err := t.closed(128, 500*time.Millisecond); err != nil {
			return err
		}
		cpu := t.cpu()
		_, n, err := t.closed(128, 2*time.Second)
		f.RejectCost = (t.cpu() - cpu).Seconds() / float64(max(n, 1))
		return err
	})
	if err == nil {
		prices[r.work+kind] = f.RejectCost
	}
	return err
}

// left is the share of the capacity that is left at this load when everything
// too much is rejected.
func (f *figures) left() {
	spent := f.Capacity * f.RejectCost
	f.Left = max((1-f.Times*spent)/(1-spent), 0)
}

// cell measures one limiter at one load.
func (f *figures) cell(r rig, seconds float64) error {
	slo := sloOf(r.work)
	p := planOf(time.Duration(seconds*1e9), f.Times)
	err := r.with(func(t target) error {
		busy := make(chan float64, 1)
		go func() { busy <- p.watch(t) }()
		before := ticksNow()
		all, err := t.run(max(2*time.Second, 2*slo), p.phases(f.Capacity, f.Times))
		f.take(all, p, slo)
		f.Used, f.Stolen = <-busy, ticksNow().since(before)
		return err
	})
	debug.FreeOSMemory()
	return err
}

// sloOf is how late an answer still counts.
func sloOf(work string) time.Duration {
	switch work {
	case "100us":
		return 50 * time.Millisecond
	case "500us":
		return 100 * time.Millisecond
	case "5ms":
		return 250 * time.Millisecond
	case "100ms":
		return 1500 * time.Millisecond
	}
	return 500 * time.Millisecond
}
