package main

import (
	"fmt"
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
	byProcs := make([][]result, len(procs))
	for i, n := range procs {
		for _, w := range scaled(n) {
			done := announce(fmt.Sprintf("%s, processors: %d", w.title, n))
			res, err := measure(w, p)
			done()
			if err != nil {
				return err
			}
			byProcs[i] = append(byProcs[i], res)
		}
	}
	fmt.Print(scalingTables(procs, byProcs))
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

// scalingTables has a table for each work: by contender and number of processors the
// nanoseconds for a decision, and the same over the floor beside it.
func scalingTables(procs []int, byProcs [][]result) string {
	var b strings.Builder
	m := thisMachine()
	fmt.Fprintf(&b, "# Decisions on several processors\n\nWritten by `make bench BENCH='-scaling ...'` on %s, %d processors (%s).\n\n", m.CPU, m.Cores, m.System)
	b.WriteString("A goroutine on each processor, all on the same limiter. Wall time for one decision of all\n" +
		"together, in nanoseconds (median), and in parentheses the multiple of the floor.\n")
	for i, first := range byProcs[0] {
		fmt.Fprintf(&b, "\n## %s\n\n| on processors: |", first.title)
		for _, n := range procs {
			fmt.Fprintf(&b, " %d |", n)
		}
		b.WriteString("\n|---|" + strings.Repeat("--:|", len(procs)) + "\n")
		for k, row := range first.rows {
			fmt.Fprintf(&b, "| %s |", row.name)
			for j := range procs {
				res := byProcs[j][i]
				fmt.Fprintf(&b, " %.1f (%.2f) |", res.rows[k].median(), res.overFloor(res.rows[k]))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
