package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// report is all that a run found out.
type report struct {
	when    time.Time
	took    time.Duration
	quick   bool
	plan    plan
	machine machine
	results []result
	keys    int // of the footprints
	prints  []footprint
	first   []newKeys
	remote  []remoteCost // of a decision on Redis
	attacks []attacked
}

// attacked is an attack with its result.
type attacked struct {
	attack
	verdicts []verdict
}

// markdown is the page. Every figure in it was measured in this run.
func (r report) markdown() string {
	var b strings.Builder
	r.title(&b)
	r.answer(&b)
	r.losses(&b)
	r.head(&b)
	r.measurements(&b)
	r.memory(&b)
	r.newKeys(&b)
	r.remoteCosts(&b)
	r.matrices(&b)
	r.details(&b)
	r.targets(&b)
	return b.String()
}

func (r report) title(b *strings.Builder) {
	b.WriteString("# sluice beside its peers\n\n<!-- Written by the program in bench/. Do not edit. -->\n\n")
	fmt.Fprintf(b, "Measured on %s in %v by `make bench`", r.when.Format("2006-01-02"), r.took.Round(time.Second))
	if r.quick {
		b.WriteString(" with `-quick`: **short samples, for a first look; do not compare them**")
	}
	b.WriteString(".\n\n")
}

// head says how it was measured.
func (r report) head(b *strings.Builder) {
	b.WriteString("## How\n\n| | |\n|---|---|\n")
	m := r.machine
	b.WriteString(m.String())
	fmt.Fprintf(b, "| one reading of the clock | %.1f ns (clock source %s) |\n", m.clock, m.clocksource)
	fmt.Fprintf(b, "| rounds | %d of %v for each contender, in turns |\n| peers | %s |\n\n",
		r.plan.rounds, r.plan.sample, strings.Join(m.Peers, ", "))
	b.WriteString("All libraries do the same work in one process. Each round times each of them once " +
		"and begins with another one; before each sample the garbage is collected. Figures are medians over the rounds. " +
		"A multiple is the median of the multiples within each round. " +
		"Each sample is checked: a wrong admission or denial by a contender ends the run. " +
		"With two goroutines, the time is wall time divided by the decisions of both: half the time of one core would be perfect.\n\n")
}

func (r report) targets(b *strings.Builder) {
	ts := targets(r.results, r.prints)
	if len(ts) == 0 {
		return
	}
	b.WriteString("## Targets\n\nThey were set before the code was written.\n\n")
	b.WriteString("| work | target | here | |\n|---|---|---|---|\n")
	met := 0
	var impossible []string
	for _, t := range ts {
		if t.met() {
			met++
		}
		if t.impossible() {
			impossible = append(impossible, fmt.Sprintf("%s (target %s, floor %.0f ns)", t.what, t.show(t.limit), t.floor))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", t.what, t.show(t.limit), t.show(t.got), t.verdict())
	}
	fmt.Fprintf(b, "\n%d of %d are met.", met, len(ts))
	if len(impossible) > 0 {
		fmt.Fprintf(b, " Targets in nanoseconds suppose a clock that is read in about 25 ns; here it takes %.0f. "+
			"The floor itself, with no limiter at all, is above the target of: %s.", r.machine.clock, strings.Join(impossible, "; "))
	}
	b.WriteString("\n\n")
}

// losses lists every peer that did the same work in less time or memory.
func (r report) losses(b *strings.Builder) {
	var lost []string
	for _, res := range r.results {
		lost = append(lost, res.losses()...)
	}
	for _, p := range r.prints {
		if ours := r.prints[0]; p.bytes < ours.bytes {
			lost = append(lost, fmt.Sprintf("Memory: %s keeps %.0f bytes a key, sluice %.0f", p.library, p.bytes, ours.bytes))
		}
	}
	for _, p := range r.remote {
		lost = append(lost, p.losses(r.remote[0])...)
	}
	b.WriteString("## Where sluice loses\n\n")
	if len(lost) == 0 {
		b.WriteString("To no peer in these measurements. See the targets below for the ones that it misses.\n\n")
		return
	}
	for _, l := range lost {
		fmt.Fprintf(b, "- %s\n", l)
	}
	b.WriteString("\n")
}

// losses compares each peer with each of ours: a peer that answers more than yes
// or no is compared with Acquire, not with Allow.
func (r result) losses() (lost []string) {
	for _, us := range r.rows {
		for _, x := range r.rows {
			if us.kind != ours || x.kind != peer {
				continue
			}
			if v := r.versus(x, us); v < 1 {
				lost = append(lost, fmt.Sprintf("%s: %s takes %.2f x the time of %s", r.title, x.name, v, us.name))
			}
			if x.allocs < us.allocs {
				lost = append(lost, fmt.Sprintf("%s: %s makes %g allocations, %s %g", r.title, x.name, x.allocs, us.name, us.allocs))
			}
		}
	}
	return lost
}

// losses lists the resources of which p takes less than us.
func (p remoteCost) losses(us remoteCost) (lost []string) {
	for _, x := range []struct {
		what     string
		they, we float64
	}{
		{"us of the server for a decision", p.cpu, us.cpu}, {"bytes for a key", p.key, us.key},
		{"bytes sent for a decision", p.sent, us.sent}, {"bytes received for a decision", p.received, us.received},
	} {
		if x.they < x.we {
			lost = append(lost, fmt.Sprintf("Redis: %s takes %.4g %s, sluice %.4g", p.library, x.they, x.what, x.we))
		}
	}
	return lost
}

func (r report) measurements(b *strings.Builder) {
	b.WriteString("## Measurements\n\n")
	panels := r.panels()
	b.WriteString("Blue is sluice, grey a peer, dark the floor that all of them have.\n\n")
	for _, p := range pictured {
		if len(panels[p.name]) > 0 {
			fmt.Fprintf(b, "![time of a decision: %s](bench-%s.svg)\n\n", p.name, p.name)
		}
	}
	for _, res := range r.results {
		res.table(b)
	}
}

// table shows one group.
func (r result) table(b *strings.Builder) {
	floor, us := "x floor", "x "+r.us
	if r.over {
		floor = "ns over the handler"
	}
	fmt.Fprintf(b, "### %s\n\n| | ns | middle half | %s | %s | allocations | bytes |\n|---|--:|--:|--:|--:|--:|--:|\n", r.title, floor, us)
	for _, x := range r.rows {
		low, high := quartiles(x.ns)
		name := x.name
		if x.kind == ours {
			name = "**" + name + "**"
		}
		fmt.Fprintf(b, "| %s | %.1f | %.1f - %.1f | %s | %s | %g | %g |\n",
			name, x.median(), low, high, r.floorCell(x), r.usCell(x), x.allocs, x.bytes)
	}
	b.WriteString("\n")
}

func (r result) floorCell(x row) string {
	switch {
	case r.over && x.kind == floor:
		return ""
	case r.over:
		return fmt.Sprintf("%.0f", r.overFloor(x))
	}
	return fmt.Sprintf("%.2f", r.overFloor(x))
}

func (r result) usCell(x row) string {
	if v := r.overUs(x); x.kind != floor && !math.IsNaN(v) {
		return fmt.Sprintf("%.2f", v)
	}
	return ""
}

func (r report) memory(b *strings.Builder) {
	if len(r.prints) == 0 {
		return
	}
	fmt.Fprintf(b, "### Memory of %d live keys\n\nThe names of the keys are not counted, except where a library copies them. "+
		"sluice and throttled take the expected number of keys as a parameter; the others have none.\n\n![memory](bench-memory.svg)\n\n| | bytes a key |\n|---|--:|\n", r.keys)
	for _, p := range r.prints {
		fmt.Fprintf(b, "| %s | %.1f |\n", p.library, p.bytes)
	}
	b.WriteString("\n")
}

func (r report) remoteCosts(b *strings.Builder) {
	if len(r.remote) == 0 {
		return
	}
	b.WriteString("### The cost of a decision on Redis\n\n256 callers, 10 000 keys, one sample of 100 000 decisions each. Processor time is the server's own; " +
		"the bytes of a key are the result of MEMORY USAGE, its name included.\n\n" +
		"| | us of the server | bytes sent | bytes received | bytes a key |\n|---|--:|--:|--:|--:|\n")
	for _, p := range r.remote {
		fmt.Fprintf(b, "| %s | %.2f | %.0f | %.0f | %.0f |\n", p.library, p.cpu, p.sent, p.received, p.key)
	}
	b.WriteString("\n")
}
