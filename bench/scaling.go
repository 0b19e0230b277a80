package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// scaled are the works that are measured on several processors, with a goroutine on
// each.
func scaled(cores int) []work {
	all := []work{
		{title: "One bucket", us: oursAllow, make: oneBucket},
		keyedWork(1<<10, cores), keyedWork(1<<17, cores),
		{title: "Fixed in-flight limit", us: fixedLimit, make: func() []contender { return asked(fixedGates(1000)) }},
		{title: "Adaptive in-flight limit", us: bbrLimit, make: func() []contender { return asked(adaptiveGates(true)) }},
	}
	all[1].title, all[2].title = "1024 keys", "131 072 keys"
	for i := range all {
		all[i].id, all[i].cores = "scaling", cores
		all[i].title += fmt.Sprintf(" on %d processors, a goroutine on each", cores)
	}
	return all
}

// scaling measures all of them on each number of processors of a list, "1,2,4", and
// prints a table for each. Numbers beyond those of the machine are left out.
func scaling(list string, p plan) error {
	procs, err := processors(list, runtime.NumCPU())
	if err != nil {
		return err
	}
	quiet()
	out := newPage(os.Stdout)
	for _, n := range procs {
		for _, w := range scaled(n) {
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

// processors parses a list, and drops the numbers above most.
func processors(list string, most int) (procs []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-scaling has %q, want numbers of processors such as 1,2,4", text)
		}
		if n <= most && !slices.Contains(procs, n) {
			procs = append(procs, n)
		}
	}
	if len(procs) == 0 {
		return nil, fmt.Errorf("-scaling is %q, but this machine has only %d processors", list, most)
	}
	return procs, nil
}
