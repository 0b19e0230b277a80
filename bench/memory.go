package main

import (
	"runtime"
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
func footprints(n int) []footprint {
	ks := keys(n)
	var all []footprint
	for _, lib := range keyedLibraries() {
		before := heap()
		ask := lib.make(quota{100, time.Hour}, n)
		for _, k := range ks {
			ask(k)
		}
		all = append(all, footprint{lib.library, float64(heap()-before) / float64(n)})
		runtime.KeepAlive(ask)
	}
	runtime.KeepAlive(ks)
	return all
}
