package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/bench/host"
)

// group is a part of the matrix: every limiter at every load.
type group struct {
	work     string
	limiters []string
	loads    []float64
	seconds  float64
}

var (
	ourLimiters  = []string{"none", "default"}
	ownParts     = []string{"runqueue", "bbr"}
	peerLimiters = []string{"aegis", "failsafe", "gozero"}
	rpcLimiters  = []string{"none/grpc", "default/grpc", "default/tap"}
	// rejects denies every request. Where even its clients get no answer in time, the
	// generator is the limit.
	rejects = []string{"rejects"}
)

// tuned are the handlers that the constants of the strategies were tuned on;
// judged those that the tuning never used. Nor did it use gRPC.
var (
	tuned  = []string{"500us", "5ms", "30ms", "mix"}
	judged = append([]string{"100us", "100ms", "2ms+50ms"}, shapes...)
)

// shapes are handlers that do more than compute: they leave garbage, compute in four
// goroutines, are rarely long, hold a mutex, or pass the request on.
var shapes = []string{"json", "fanout", "bimodal", "mutex", "proxy"}

// matrix is everything that is measured. Handlers of tens of milliseconds
// are measured for longer, because few of them fit into a second, and their
// peers at one load, to keep the whole below forty minutes.
func matrix() (all []group) {
	for _, work := range []string{"100us", "500us", "5ms", "30ms", "100ms", "2ms+50ms", "mix"} {
		loads := []float64{.85, 2, 5, 10}
		if work == "30ms" || work == "100ms" {
			all = append(all, group{work, ourLimiters, loads, 12}, group{work, peerLimiters, []float64{5}, 12})
			continue
		}
		peerLoads := []float64{5}
		if work == "500us" {
			peerLoads = []float64{2, 5}
		}
		all = append(all,
			group{work, ourLimiters, loads, 6}, group{work, peerLimiters, peerLoads, 6})
		if strings.HasSuffix(work, "us") || work == "5ms" {
			all = append(all, group{work, ownParts, []float64{5}, 6})
		}
		if work == "500us" || work == "5ms" {
			all = append(all, group{work, rpcLimiters, []float64{2, 5}, 6})
		}
	}
	for _, work := range shapes {
		all = append(all, group{work, []string{"none"}, []float64{.85, 2}, 6}, group{work, []string{"default"}, []float64{2, 5}, 6})
	}
	// The shortest handler, where the price of a rejection decides, and the two at which
	// the generator has the most to do.
	return append(all,
		group{"100us", []string{"default/listener"}, []float64{2, 5}, 6},
		group{"100us", rejects, []float64{5, 10}, 3}, group{"proxy", rejects, []float64{5}, 3})
}

// chosen is the matrix, restricted to the flags that were given.
func chosen() (all []group, err error) {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	wanted, limiters := strings.Split(*works, ","), strings.Split(*limiters, ",")
	times, err := parseLoads()
	if err != nil {
		return nil, err
	}
	for _, g := range matrix() {
		if given["seconds"] {
			g.seconds = *seconds
		}
		if given["limiter"] {
			g.limiters = keep(g.limiters, limiters)
		}
		if given["loads"] {
			g.loads = keep(g.loads, times)
		}
		if len(g.limiters) > 0 && len(g.loads) > 0 && (!given["work"] || slices.Contains(wanted, g.work)) {
			all = append(all, g)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("nothing in the matrix has that handler, limiter and load")
	}
	return all, nil
}

func parseLoads() (times []float64, err error) {
	for s := range strings.SplitSeq(*loads, ",") {
		t, err := strconv.ParseFloat(s, 64)
		if err != nil || !(t > 0) {
			return nil, fmt.Errorf("the load is %q, want a number above 0", s)
		}
		times = append(times, t)
	}
	if !(*seconds > 0) {
		return nil, fmt.Errorf("-seconds is %v, want more than 0", *seconds)
	}
	return times, nil
}

// keep returns the common elements of both lists.
func keep[T comparable](all, wanted []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return !slices.Contains(wanted, x) })
}

// matrixRun measures every cell. One that fails is written down as such, and the next
// one follows.
func matrixRun() error {
	groups, err := chosen()
	if err != nil {
		return err
	}
	base := rig{pinned: true, procs: 1}
	if base.spin, err = spinOf(base.command(*bin)); err != nil {
		return err
	}
	facts := host.This(*bin, "github.com/go-kratos/aegis", "github.com/failsafe-go/failsafe-go", "github.com/zeromicro/go-zero", "google.golang.org/grpc")
	if err := appendLine(*records, line{Machine: &facts}); err != nil {
		return err
	}
	fmt.Println(heading)
	failed := 0
	for _, g := range groups {
		for _, l := range g.limiters {
			r := base
			r.work, r.limiter, r.patience = g.work, l, max(2*time.Second, 2*sloOf(g.work))
			n, err := g.measure(r)
			if err != nil {
				return err
			}
			failed += n
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d cells failed", failed)
	}
	return nil
}

// measure does one limiter at each load and returns how many cells failed. An
// error means that nothing can be written down.
func (g group) measure(r rig) (failed int, err error) {
	f := figures{Work: r.work, Transport: r.transport(), Limiter: r.limiter}
	if f.Capacity, err = known(capacities, r.work+r.transport(), r.sustained); err == nil {
		f.RejectCost, err = known(prices, r.work+r.way(), func() (each float64, err error) {
			// As many connections as Go's poller hands out at a time, where nothing ever waits for a
			// wakeup, and so at its cheapest.
			err = r.as("rejects").with(func(r rig) (err error) { each, err = r.price(128, 2*time.Second); return err })
			return each, err
		})
	}
	for _, f.Times = range g.loads {
		f := f
		f.left()
		cause := err
		if cause == nil {
			cause = f.cell(r, g.seconds)
		}
		if cause != nil {
			f.Failed = strings.Join(strings.Fields(cause.Error()), " ") // on one line
			failed++
		}
		fmt.Println(&f)
		if err := appendLine(*records, f); err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// busy is the number of requests on their way that keep the server busy.
func (r rig) busy() int {
	if strings.Contains(r.work, "+") || r.work == "proxy" {
		return 100
	}
	return 8
}

// Capacities and prices are measured once for each handler and kind of server.
var capacities, prices = map[string]float64{}, map[string]float64{}

func known(all map[string]float64, key string, measure func() (float64, error)) (float64, error) {
	if x, ok := all[key]; ok {
		return x, nil
	}
	x, err := measure()
	if err == nil {
		all[key] = x
	}
	return x, err
}

// cell measures one limiter at one load.
func (f *figures) cell(r rig, seconds float64) error {
	p := planOf(time.Duration(seconds*1e9), f.Times)
	err := r.with(func(r rig) error {
		busy := make(chan float64, 1)
		go func() { busy <- p.watch(r.server) }()
		before := ticksNow()
		all, err := r.run(openBefore, p.phases(f.Capacity, f.Times)...)
		f.take(all, p, sloOf(f.Work))
		f.Used, f.Stolen = <-busy, ticksNow().since(before)
		return err
	})
	debug.FreeOSMemory()
	return err
}

// slos are how late an answer still counts; 500 ms for handlers that are not among them.
var slos = map[string]time.Duration{
	"100us": 50 * time.Millisecond, "500us": 100 * time.Millisecond, "5ms": 250 * time.Millisecond, "100ms": 1500 * time.Millisecond,
}

func sloOf(work string) time.Duration { return cmp.Or(slos[work], 500*time.Millisecond) }
