package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

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

// matrix is everything that the page shows. Handlers of tens of milliseconds
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

// chosen is the matrix, restricted to the flags that were given, or else all
// that the flags name.
func chosen() ([]group, error) {
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	wanted, limiters := strings.Split(*works, ","), strings.Split(*limiters, ",")
	var times []float64
	for _, s := range strings.Split(*loads, ",") {
		t, err := strconv.ParseFloat(s, 64)
		if err != nil || t <= 0 {
			return nil, fmt.Errorf("the load is %q, want a number above 0", s)
		}
		times = append(times, t)
	}
	if !*whole {
		var all []group
		for _, work := range wanted {
			all = append(all, group{work, limiters, times, *seconds})
		}
		return all, nil
	}
	all := matrix()
	for i := range all {
		g := &all[i]
		if given["seconds"] {
			g.seconds = *seconds
		}
		if given["limiter"] {
			g.limiters = keep(g.limiters, limiters)
		}
		if given["loads"] {
			g.loads = keep(g.loads, times)
		}
	}
	if given["work"] {
		all = slices.DeleteFunc(all, func(g group) bool { return !slices.Contains(wanted, g.work) })
	}
	all = slices.DeleteFunc(all, func(g group) bool { return len(g.limiters) == 0 || len(g.loads) == 0 })
	if len(all) == 0 {
		return nil, errors.New("nothing in the matrix has that handler, limiter and load")
	}
	return all, nil
}

// keep returns the common elements of both lists.
func keep[T comparable](all, wanted []T) (kept []T) {
	for _, x := range all {
		if slices.Contains(wanted, x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// run measures every cell. One that fails is written down as such, and the next
// one follows.
func run() error {
	groups, err := chosen()
	if err != nil {
		return err
	}
	spin, err := ask(*bin)
	if err != nil {
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
			n, err := g.measure(rig{work: g.work, limiter: l, spin: spin})
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
	f, err := r.capacity()
	if err == nil {
		err = f.priceRejections(r)
	}
	f.Limiter = r.limiter
	for _, f.Times = range g.loads {
		f := f
		f.left()
		if err == nil {
			f.Failed = said(f.cell(r, g.seconds))
		} else {
			f.Failed = said(err)
		}
		if f.Failed != "" {
			failed++
		}
		fmt.Println(&f)
		if err := f.save(*records); err != nil {
			return failed, err
		}
	}
	return failed, nil
}

// said is the error on one line.
func said(err error) string {
	if err == nil {
		return ""
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// stop ends the program with an error.
func stop(err error) {
	fmt.Fprintln(os.Stderr, "overload:", err)
	os.Exit(1)
}
