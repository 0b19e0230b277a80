package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// footprint is the memory of a library for each live key.
type footprint struct {
	library string
	bytes   float64
}

// footprints lets n keys be charged once each and weighs the heap before and
// after. The names of the keys exist before; a library that copies them pays
// for it, one that refers to them does not.
func footprints(n int) (all []footprint) {
	ks := keys(n)
	for _, lib := range those(hasKeys) {
		before := heap()
		ask := lib.limit(quota{100, time.Hour}, n)
		for _, k := range ks {
			ask(k, 1)
		}
		all = append(all, footprint{lib.name, float64(heap()-before) / float64(n)})
		runtime.KeepAlive(ask)
	}
	runtime.KeepAlive(ks)
	return all
}

// newKeys has the time that a library takes for keys that it has not seen, and
// the time that the collector takes for them afterwards.
type newKeys struct {
	library   string
	took      []time.Duration // of each key's first decision, sorted
	collector time.Duration   // of a forced cycle, the median
	started   time.Duration   // of the first decision of a process, the median; 0: not measured
}

// tooLong is the longest time that a first decision should take.
const tooLong = 20 * time.Microsecond

// firstDecisions asks about n keys once each. The first row asks nothing: it shows the
// effect of the machine itself on a measurement.
func firstDecisions(n int) []newKeys {
	nothing := library{name: "nothing", limit: func(quota, int) ask { return func(string, int) bool { return true } }}
	libs := append([]library{nothing}, those(hasKeys)...)
	ks := keys(n)
	var all []newKeys
	for _, lib := range libs {
		ask := lib.limit(quota{100, time.Hour}, n)
		took := make([]time.Duration, n)
		runtime.GC()
		for i, k := range ks {
			began := time.Now()
			ask(k, 1)
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		all = append(all, newKeys{library: lib.name, took: took, collector: cycle(), started: startOf(lib.name)})
		runtime.KeepAlive(ask)
	}
	runtime.KeepAlive(ks)
	return all
}

// cycle is the median time of a forced cycle of the collector.
func cycle() time.Duration {
	var took []time.Duration
	for range 7 {
		began := time.Now()
		runtime.GC()
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

const firstOfProcess = "SLUICE_BENCH_FIRST" // the library whose first decision a process prints, in ns

// printFirst makes a limiter and times its first decision, if the environment asks for it.
func printFirst() bool {
	name := os.Getenv(firstOfProcess)
	for _, lib := range those(hasKeys) {
		if lib.name == name {
			ask := lib.limit(quota{100, time.Hour}, 1_000_000)
			began := time.Now()
			ask("user", 1)
			fmt.Println(time.Since(began).Nanoseconds())
		}
	}
	return name != ""
}

// startOf starts processes that print their first decision. The median; 0 without one.
func startOf(library string) time.Duration {
	self, err := os.Executable()
	if err != nil {
		return 0
	}
	var took []time.Duration
	for range 21 {
		child := exec.Command(self)
		child.Env = append(os.Environ(), firstOfProcess+"="+library)
		out, err := child.Output()
		ns, bad := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil || bad != nil {
			return 0
		}
		took = append(took, time.Duration(ns))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// quantile is of the sorted times.
func (k newKeys) quantile(share float64) time.Duration {
	return k.took[min(int(share*float64(len(k.took))), len(k.took)-1)]
}

func (k newKeys) tooSlow() int {
	at, _ := slices.BinarySearch(k.took, tooLong+1)
	return len(k.took) - at
}
