package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is all that a run found out. Every figure in it was measured in that run.
type report struct {
	when    time.Time
	quick   bool
	plan    plan
	machine machine
	results []result
	keys    int // of the footprints
	prints  []footprint
	remote  []remoteCost // of a decision on Redis
	attacks []attacked
}

// attacked is an attack with its result.
type attacked struct {
	attack
	verdicts []verdict
}

// page writes tables whose cells are separated by tabs.
type page struct{ *tabwriter.Writer }

func newPage(out io.Writer) page { return page{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)} }

func (p page) row(cells ...any) {
	for _, c := range cells {
		if f, ok := c.(float64); ok {
			c = fmt.Sprintf("%.4g", f)
		}
		_, _ = fmt.Fprintf(p, "%v\t", c)
	}
	_, _ = fmt.Fprintln(p)
}

// title ends a table and begins another one.
func (p page) title(format string, args ...any) {
	_ = p.Flush()
	_, _ = fmt.Fprintf(p, "\n"+format+"\n", args...)
	_ = p.Flush()
}

// print writes the losses first.
func (r report) print(out io.Writer) {
	p := newPage(out)
	defer func() { _ = p.Flush() }()
	r.losses(p)
	r.targets(p)
	for _, res := range r.results {
		res.table(p)
	}
	r.memory(p)
	for _, a := range r.attacks {
		p.title("Attack %s: %s Holds: %s.", a.id, a.does, a.holds)
		for _, v := range a.verdicts {
			p.row(v.library, v.verdict(), v.figure)
		}
	}
	r.head(p)
}

// lacks says what the peers do not do that are often ahead.
var lacks = []struct{ peer, what string }{
	{"x/time/rate", "no keys, no refund, no time until the next admission"},
	{"uber", "no keys, no answer: it sleeps"},
	{"juju", "no keys, no refund"},
	{"x/sync", "no outcome, no settlement, no guard against a second release"},
	{"failsafe-go bulkhead", "no outcome, no settlement, no guard against a second release"},
	{"failsafe-go adaptive limiter", "no look at the processor: a limit by latency alone"},
	{"failsafe-go adaptive throttler", "no throttle for each server"},
	{"kratos", "no limit below its threshold of the processor"},
	{"httprate, no fields", "two windows in place of an exact wait, no refund"},
	{"go-grpc-middleware", "no keys, no time in the denial, no refund"},
	{"redis_rate", "no decision while Redis is away or late"},
	{"ulule", "fixed windows; no decision while Redis is away or late"},
}

func lack(name string) string {
	for _, l := range lacks {
		if strings.Contains(name, l.peer) {
			return l.what
		}
	}
	return ""
}

// losses lists every peer that did the same work in less time or memory. A peer that answers
// more than yes or no is compared with Acquire, too.
func (r report) losses(p page) {
	p.title("Where a peer is ahead: its share of our time or memory, and what it does not do there")
	for _, res := range r.results {
		for _, us := range res.rows {
			for _, x := range res.rows {
				if us.kind != ours || x.kind != peer {
					continue
				}
				if v := res.versus(x, us); v < 1 {
					p.row(res.title, x.name, fmt.Sprintf("%.2f of %s", v, us.name), lack(x.name))
				}
				if x.allocs < us.allocs {
					p.row(res.title, x.name, fmt.Sprintf("%g allocations, %s %g", x.allocs, us.name, us.allocs), lack(x.name))
				}
			}
		}
	}
	for _, x := range r.prints {
		if us := r.prints[0]; x.bytes < us.bytes {
			p.row("bytes a key", x.library, fmt.Sprintf("%.2f", x.bytes/us.bytes), lack(x.library))
		}
	}
	for _, x := range r.remote {
		us := r.remote[0]
		for _, c := range []struct {
			what     string
			they, we float64
		}{{"processor", x.cpu, us.cpu}, {"bytes a key", x.key, us.key}, {"bytes sent", x.sent, us.sent}, {"bytes received", x.received, us.received}} {
			if c.they < c.we {
				p.row("Redis, "+c.what, x.library, fmt.Sprintf("%.2f", c.they/c.we), lack(x.library))
			}
		}
	}
}

// targets were set before the code was written.
func (r report) targets(p page) {
	ts, met := targets(r.results, r.prints), 0
	if len(ts) == 0 {
		return
	}
	p.title("Targets, set before the code. In nanoseconds they suppose a clock that is read in 25; here it takes %.0f", r.machine.clock)
	for _, t := range ts {
		if t.met() {
			met++
		}
		p.row(t.what, t.show(t.limit), t.show(t.got), t.verdict())
	}
	p.row(fmt.Sprintf("%d of %d are met", met, len(ts)))
}

// table shows one group.
func (r result) table(p page) {
	over := "x floor"
	if r.over {
		over = "ns over the handler"
	}
	p.title("%s", r.title)
	p.row("", "ns", "middle half", over, "x "+r.us, "allocations", "bytes")
	for _, x := range r.rows {
		low, high := quartiles(x.ns)
		p.row(x.name, fmt.Sprintf("%.1f", x.median()), fmt.Sprintf("%.1f - %.1f", low, high),
			fmt.Sprintf("%.2f", r.overFloor(x)), fmt.Sprintf("%.2f", r.overUs(x)), x.allocs, x.bytes)
	}
}

func (r report) memory(p page) {
	if len(r.prints) > 0 {
		p.title("Memory of %d live keys, without their names, except where a library copies them", r.keys)
	}
	for _, x := range r.prints {
		p.row(x.library, fmt.Sprintf("%.1f bytes a key", x.bytes))
	}
	if len(r.remote) > 0 {
		p.title("A decision on Redis: 256 callers, 10 000 keys, 100 000 decisions; the server's own time; MEMORY USAGE with the name")
		p.row("", "us of the server", "bytes sent", "bytes received", "bytes a key")
	}
	for _, x := range r.remote {
		p.row(x.library, x.cpu, x.sent, x.received, x.key)
	}
}

func (v verdict) verdict() string {
	if v.holds {
		return "holds"
	}
	return "falls"
}

// head says how it was measured, and how many attacks each library fell to.
func (r report) head(p page) {
	fell := map[string]int{}
	for _, a := range r.attacks {
		for _, v := range a.verdicts {
			if !v.holds {
				fell[v.library]++
			}
		}
	}
	libraries := slices.Sorted(maps.Keys(fell))
	slices.SortStableFunc(libraries, func(a, b string) int { return cmp.Compare(fell[b], fell[a]) })
	for i, l := range libraries {
		if i == 0 {
			p.title("Attacks, of %d, that a library falls to", len(r.attacks))
		}
		p.row(l, fell[l])
	}
	p.title("Measured on %s in %v, %d rounds of %v for each contender, in turns, each round begun by another one; medians.",
		r.when.Format("2006-01-02"), time.Since(r.when).Round(time.Second), r.plan.rounds, r.plan.sample)
	if r.quick {
		p.row("SHORT SAMPLES, for a first look: do not compare them")
	}
	p.row(r.machine.String())
	p.row(fmt.Sprintf("one reading of the clock: %.1f ns (%s); peers: %s", r.machine.clock, r.machine.clocksource, strings.Join(r.machine.Peers, ", ")))
}
