package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/sluice-go/sluice/bench/host"
)

// scaling measures some works on each number of processors of a list, "1,2,4", with a goroutine on
// each, and prints a table for each. Numbers beyond those of the machine are left out.
func scaling(list string, p plan) error {
	procs, err := host.Processors(list, runtime.NumCPU())
	if err != nil {
		return fmt.Errorf("-scaling: %w", err)
	}
	quiet()
	out := newPage(os.Stdout)
	for _, n := range procs {
		for _, w := range works() {
			if !slices.Contains([]string{"bucket", "keyed-1024", "keyed-131072", "inflight", "adaptive"}, w.id) {
				continue
			}
			w.cores = n
			w.title += fmt.Sprintf(", on %d processors, a goroutine on each", n)
			done := announce(w.title)
			res, err := measure(w, p)
			done()
			if err != nil {
				return err
			}
			res.table(out)
			_ = out.Flush()
		}
	}
	return nil
}
