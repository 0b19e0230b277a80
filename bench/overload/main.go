// Command overload measures what limiters keep of a real server's capacity when
// far more is asked of it: a server process on one core, an open-loop load
// generator on another, clients that give up. It prints a line for each cell
// and writes them to a file, from which -report makes the page.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

var (
	bin      = flag.String("server", "", "the server's program")
	works    = flag.String("work", "500us,5ms,30ms", "handlers: processor time, +waiting; or mix")
	loads    = flag.String("loads", "0.85,2,5,10", "of the capacity; below 1: without a step")
	limiters = flag.String("limiter", "none,default", "limiters, with /grpc or /tap over gRPC")
	seconds  = flag.Float64("seconds", 6, "length of the overload")
	records  = flag.String("json", "", "append the figures to this file")
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
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func run() error {
	spin, err := ask(*bin)
	if err != nil {
		return err
	}
	fmt.Println(heading)
	for _, work := range strings.Split(*works, ",") {
		for _, l := range strings.Split(*limiters, ",") {
			if err := measure(rig{work: work, limiter: l, spin: spin}); err != nil {
				return err
			}
		}
	}
	return nil
}

// capacities are measured once for each handler and transport.
var capacities = map[string]figures{}

func measure(r rig) error {
	f, err := r.capacity()
	if err == nil {
		err = f.priceRejections(r)
	}
	if err != nil {
		return err
	}
	for _, t := range strings.Split(*loads, ",") {
		if f.Times, err = strconv.ParseFloat(t, 64); err != nil {
			return err
		}
		f.Limiter = r.limiter
		f.left()
		if err := f.cell(r); err != nil {
			return err
		}
	}
	return nil
}

// capacity is what the handler does without a limiter, asked in a closed loop.
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
		if strings.Contains(r.work, "+") {
			n = 100
		}
		if _, _, err = t.closed(n, 500*time.Millisecond); err != nil {
			return err
		}
		start := time.Now()
		ok, _, err := t.closed(n, 3*time.Second)
		f.Capacity = float64(ok) / time.Since(start).Seconds()
		return err
	})
	capacities[key] = f
	return f, err
}

// priceRejections measures the processor time of a rejection in a server that
// rejects everything: in a closed loop over as many connections as Go's poller
// hands out at a time, where nothing ever waits for a wakeup, and so at its
// cheapest.
func (f *figures) priceRejections(r rig) error {
	r.limiter = "rejects" + strings.TrimPrefix(r.limiter, r.name())
	return r.with(func(t target) error {
		if _, _, err := t.closed(128, 500*time.Millisecond); err != nil {
			return err
		}
		cpu := t.cpu()
		_, n, err := t.closed(128, 2*time.Second)
		f.RejectCost = (t.cpu() - cpu).Seconds() / float64(max(n, 1))
		return err
	})
}

// left is the share of the capacity that is left at this load when everything
// too much is rejected.
func (f *figures) left() {
	spent := f.Capacity * f.RejectCost
	f.Left = max((1-f.Times*spent)/(1-spent), 0)
}

// cell measures one limiter at one load.
func (f *figures) cell(r rig) error {
	slo := sloOf(r.work)
	length := time.Duration(*seconds * 1e9)
	low := .85 * f.Capacity
	p := plan{before: max(4*time.Second, length*6/10), during: length, after: 5 * time.Second, settle: 2 * time.Second}
	phases := phase(low, p.before)
	phases = append(phases, phase(f.Times*f.Capacity, p.during)...)
	phases = append(phases, phase(low, p.after)...)
	if f.Times < 1 {
		phases = phase(f.Times*f.Capacity, 3*length)
	}
	err := r.with(func(t target) error {
		if f.Times >= 1 {
			go f.watch(t, p)
		}
		all, err := t.run(max(2*time.Second, 2*slo), phases)
		if f.Times < 1 {
			f.takeCalm(all, slo)
		} else {
			f.take(all, p, slo)
		}
		return err
	})
	debug.FreeOSMemory()
	if err != nil {
		return err
	}
	fmt.Println(f)
	return f.save(*records)
}

// watch measures how busy the server is during the overload.
func (f *figures) watch(t target, p plan) {
	time.Sleep(p.before + p.settle)
	cpu, start := t.cpu(), time.Now()
	time.Sleep(p.during - p.settle - 500*time.Millisecond)
	f.Used = (t.cpu() - cpu).Seconds() / time.Since(start).Seconds()
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
