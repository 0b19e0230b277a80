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
