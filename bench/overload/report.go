package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// report writes the page and the plots of the records into dir. Unmeasured cells are left out.
func report(records, dir string) error {
	r, err := readResults(records)
	if err != nil {
		return err
	}
	if len(r.cells) == 0 {
		return fmt.Errorf("%s has no figures", records)
	}
	drawn, err := r.pictures(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "overload.md"), []byte(r.markdown(drawn)), 0o644)
}

// markdown is the page, with the pictures that were drawn.
func (r results) markdown(drawn []picture) string {
	var b strings.Builder
	r.head(&b)
	for _, p := range drawn {
		fmt.Fprintf(&b, "![%s](%s)\n\n%s\n\n", p.alt, p.file, p.caption)
	}
	r.targets(&b)
	r.unmeasured(&b)
	r.lost(&b)
	b.WriteString(method)
	for _, s := range r.sections() {
		r.section(&b, s)
	}
	return b.String()
}

func (r results) head(b *strings.Builder) {
	b.WriteString("# The capacity that limiters keep under overload\n\n<!-- Written by the program in bench/overload. Do not edit. -->\n\n")
	b.WriteString(r.conclusion())
	fmt.Fprintf(b, "Measured on %s by `make overload`: real processes, real sockets, far more requests than the server can answer.\n\n| | |\n|---|---|\n", r.dates())
	m := r.machine
	if m.CPU != "" {
		b.WriteString(m.String())
	}
	if len(m.Peers) > 0 {
		fmt.Fprintf(b, "| peers, and gRPC | %s |\n", strings.Join(m.Peers, ", "))
	}
	b.WriteString(r.stolen())
	fmt.Fprintf(b, "| length of the overload | %s |\n\n", r.overloads())
}

// conclusion is what a reader takes away, "" without cells of overload.
func (r results) conclusion() string {
	kept := map[string][]float64{}
	for _, f := range r.cells {
		if f.Failed == "" && f.Times > 1 && f.Left > 0 && (f.Limiter == "none" || f.Limiter == "default") {
			kept[f.Limiter] = append(kept[f.Limiter], f.Goodput/f.Left)
		}
	}
	if len(kept["none"]) == 0 || len(kept["default"]) == 0 {
		return ""
	}
	middle := func(xs []float64) float64 { slices.Sort(xs); return xs[len(xs)/2] }
	return fmt.Sprintf("**A server with `adaptive.Default()` answers %.0f %% of what it can in time, and one without a limiter %.0f %%** (medians of the handlers and loads below, at 2 to 10 times the capacity of the processor). "+
		"For a pool, a lock or another service behind the server, see `go test ./sim/pools`. The exceptions are under Targets.\n\n",
		100*middle(kept["default"]), 100*middle(kept["none"]))
}

// method says how it was measured.
var method = "## How it was measured\n\n" +
	"The server is a process of its own on one core, with `GOMAXPROCS=1`; the load generator is another on another core. " +
	"The generator is an open loop: requests come at random instants (Poisson), whether or not earlier ones were answered. " +
	"A client gives up and hangs up after 2s, or twice the SLO where that is longer. Every cell starts a new server. " +
	fmt.Sprintf("Over HTTP the clients have %d connections open before the load begins, as pools have, and open more when all are in use.\n\n", openBefore) +
	"- *Capacity* is the throughput of the handler without a limiter in a closed loop, measured right before the handler's cells. All loads and all goodput are multiples of it.\n" +
	fmt.Sprintf("- *The load* is %gx, then the one in the table, then %gx again for %v. The first 2s of each part, or a third of a shorter overload, are not counted in the figures, only in the time to recover. Loads below 1 have no step.\n", steady, steady, aftermath) +
	"- *Goodput* is the answers with status 200 within the SLO, timed from when the request was due.\n" +
	"- *Left* is the possible goodput: rejecting costs processor time too. The lowest cost of a rejection is measured in a server that rejects everything; c is this cost as a share of a request's, and (1 - load * c) / (1 - c) is left.\n" +
	"- *p50 and p99* are the latencies of all answers with status 200, in time or not.\n" +
	"- *Gave up* is the share of clients without an answer in time, *rejected* the share with a denial.\n" +
	"- *Recovery* is the time until the end of the last quarter of a second, after the load has fallen, in which more than a tenth of the requests were not served within the SLO.\n\n" +
	"`none` is no limiter; `rejects` denies everything; `default` is `adaptive.Default()`, `default, listener` the same with `early.NewListener`, `runqueue` and `bbr` the strategies of those names, without options. " +
	"aegis is go-kratos' BBR, failsafe is failsafe-go's adaptive limiter, gozero is go-zero's adaptive shedder, all with their defaults.\n\n" +
	fmt.Sprintf("The constants of RunQueue were tuned on the handlers %s. They are judged on %s and on gRPC, which the tuning never used.\n\n",
		strings.Join(tuned, ", "), strings.Join(judged, ", "))

// targets shows the results of the default, handler by handler.
func (r results) targets(b *strings.Builder) {
	var rows []string
	met, known := 0, 0
	for _, s := range r.sections() {
		for _, limiter := range []string{"default", "default/listener", "default/grpc", "default/tap"} {
			all := r.targetsOf(s, limiter)
			row, any := "| "+s.work+of(limiter)+origin(s)+" |", false
			for _, t := range all {
				row += " " + t.String() + " |"
				if t.known {
					known, any = known+1, true
				}
				if t.known && t.met() {
					met++
				}
			}
			if any {
				rows = append(rows, row)
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "## Targets\n\nThey were set before the code was written, for `default`. Each cell is the worst of the loads. %d of %d are met.\n\n", met, known)
	fmt.Fprintf(b, "| handler | goodput / left: at least %.2f | p99 within the SLO | rejected at %gx: at most %s, and what misses the SLO without a limiter | recovery: at most %v |\n|---|---|---|---|---|\n%s\n\n",
		leastOfLeft, steady, percent(mostRejected), latestRecovery, strings.Join(rows, "\n"))
}

// of names the transport of a limiter.
func of(limiter string) string {
	switch _, kind, _ := strings.Cut(limiter, "/"); kind {
	case "listener":
		return ", denied at the socket"
	case "grpc":
		return " over gRPC"
	case "tap":
		return " over gRPC, with the tap"
	}
	return ""
}

// origin marks the handlers on which the constants were tuned.
func origin(s section) string {
	if s.transport == "http" && contains(tuned, s.work) {
		return " (tuned)"
	}
	return ""
}

func contains(all []string, s string) bool { return len(keep(all, []string{s})) > 0 }

// unmeasured lists the cells that say something about the generator, not about a limiter.
func (r results) unmeasured(b *strings.Builder) {
	var cells []string
	for _, s := range r.sections() {
		for _, f := range r.of(s) {
			if f.Failed == "" && r.beyond(f) {
				cells = append(cells, fmt.Sprintf("- %s at %gx: %s", s.title(), f.Times, f.Limiter))
			}
		}
	}
	if len(cells) > 0 {
		fmt.Fprintf(b, "## Not measurable on this machine\n\nAt these loads more than %s of the clients of a server that only rejects have no answer in time: the generator is the limit, and new connections cost it the most. "+
			"The cells in which clients gave up are in the tables below, but they are neither met nor missed.\n\n%s\n\n", percent(mostLost), strings.Join(cells, "\n"))
	}
}

// lost lists the cells in which a peer keeps more than the default.
func (r results) lost(b *strings.Builder) {
	var lost []string
	for _, f := range r.cells {
		us, ok := r.find(f.Work, "default", f.Times)
		if ok && f.Failed == "" && f.Times > 1 && contains(peerLimiters, f.Limiter) && f.Goodput > us.Goodput {
			lost = append(lost, fmt.Sprintf("- %s at %gx: %s keeps %.3f of the capacity, default %.3f", f.Work, f.Times, f.Limiter, f.Goodput, us.Goodput))
		}
	}
	if len(lost) > 0 {
		fmt.Fprintf(b, "## Where a peer keeps more\n\n%s\n\n", strings.Join(lost, "\n"))
	}
}

// section is the table of one handler.
func (r results) section(b *strings.Builder, s section) {
	cells := r.of(s)
	fmt.Fprintf(b, "## %s\n\nSLO %v", s.title(), sloOf(s.work))
	if at := firstMeasured(cells); at != nil {
		fmt.Fprintf(b, ", capacity %.0f a second, a rejection costs %.0f us", at.Capacity, at.RejectCost*1e6)
	}
	fmt.Fprintf(b, ".\n\n| limiter | load | goodput | left | goodput / left | p50 | p99 | rejected | gave up | rejected at %gx before | after | recovery |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n", steady)
	for i := range cells {
		b.WriteString(cells[i].row())
	}
	b.WriteString("\n")
}

// firstMeasured is a cell that did not fail, if there is one.
func firstMeasured(cells []figures) *figures {
	for i := range cells {
		if cells[i].Failed == "" {
			return &cells[i]
		}
	}
	return nil
}

// row is f as a line of its table.
func (f *figures) row() string {
	name := strings.Replace(strings.TrimSuffix(f.Limiter, "/grpc"), "/", ", ", 1)
	if strings.HasPrefix(name, "default") {
		name = "**" + name + "**"
	}
	s := fmt.Sprintf("| %s | %gx |", name, f.Times)
	if f.Failed != "" {
		return s + " failed: " + strings.ReplaceAll(f.Failed, "|", "/") + strings.Repeat(" |", 10) + "\n"
	}
	p50, p99 := rounded(f.P50), rounded(f.P99)
	if f.Times < 1 {
		return s + fmt.Sprintf(" %.3f | | | %s | %s | %s | %s | | | |\n", f.Goodput, p50, p99, percent(f.Before), percent(f.GaveUp))
	}
	if f.Limiter == "rejects" {
		return s + fmt.Sprintf(" | | | | | %s | %s | | | |\n", percent(f.Rejected), percent(f.GaveUp))
	}
	left := "nothing"
	if f.Left > 0 {
		left = ratio(f.ofLeft())
	}
	return s + fmt.Sprintf(" %.3f | %.3f | %s | %s | %s | %s | %s | %s | %s | %s |\n", f.Goodput, f.Left, left, p50, p99,
		percent(f.Rejected), percent(f.GaveUp), percent(f.Before), percent(f.After), f.recovered())
}

func (f *figures) recovered() string {
	if f.Recovery >= aftermath {
		return fmt.Sprintf("not in %v", aftermath)
	}
	return f.Recovery.String()
}

// rounded is d as precisely as its size deserves; 0 says that there was none.
func rounded(d time.Duration) string {
	if d == 0 {
		return ""
	}
	unit := time.Millisecond
	if d < 10*unit {
		unit /= 100
	}
	return d.Round(unit).String()
}
