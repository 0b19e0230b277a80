package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// report prints what the records say and draws their picture into dir. Unmeasured cells are
// left out.
func report(records, dir string) (string, error) {
	r, err := readResults(records)
	if err != nil {
		return "", err
	}
	if len(r.cells) == 0 {
		return "", fmt.Errorf("%s has no figures", records)
	}
	return r.text(), r.picture(filepath.Join(dir, "overload.svg"))
}

func (r results) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%v; peers, and gRPC: %s\n%s", r.conclusion(), r.machine, strings.Join(r.machine.Peers, ", "), r.stolen())
	r.targets(&b)
	r.unmeasured(&b)
	r.lost(&b)
	return b.String()
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
	return fmt.Sprintf("A server with adaptive.Default() answers %.0f %% of what it can in time, and one without a limiter %.0f %%\n(medians of handlers and loads, at 2 to 10 times the capacity of the processor).\n",
		100*middle(kept["default"]), 100*middle(kept["none"]))
}

// targets shows the results of the default, handler by handler.
func (r results) targets(b *strings.Builder) {
	var rows []string
	met, known := 0, 0
	for _, s := range r.sections() {
		for _, limiter := range []string{"default", "default/listener", "default/grpc", "default/tap"} {
			all := r.targetsOf(s, limiter)
			row, any := s.work+of(limiter)+origin(s), false
			for _, t := range all {
				row += "; " + t.String()
				if t.where != "" {
					known, any = known+1, true
					if t.met() {
						met++
					}
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
	fmt.Fprintf(b, "\nTargets of default, set before its code, each by the worst of the loads: %d of %d are met.\nhandler; goodput / left: at least %.2f; p99 within the SLO; rejected at %gx: at most %s, and what misses the SLO without a limiter; recovery: at most %v\n%s\n",
		met, known, leastOfLeft, steady, percent(mostRejected), latestRecovery, strings.Join(rows, "\n"))
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
	if s.transport == "http" && slices.Contains(tuned, s.work) {
		return " (tuned)"
	}
	return ""
}

// unmeasured lists the cells that say something about the generator, not about a limiter.
func (r results) unmeasured(b *strings.Builder) {
	var cells []string
	for _, f := range r.cells {
		if f.Failed == "" && r.beyond(f) {
			cells = append(cells, fmt.Sprintf("%s at %gx: %s", f.Work, f.Times, f.Limiter))
		}
	}
	if len(cells) > 0 {
		fmt.Fprintf(b, "\nNeither met nor missed: the generator is the limit, since more than %s of the clients of a server that only rejects have no answer in time.\n%s\n", percent(mostLost), strings.Join(cells, "\n"))
	}
}

// lost lists the cells in which a peer keeps more than the default.
func (r results) lost(b *strings.Builder) {
	var lost []string
	for _, f := range r.cells {
		us, ok := r.find(f.Work, "default", f.Times)
		if ok && f.Failed == "" && f.Times > 1 && slices.Contains(peerLimiters, f.Limiter) && f.Goodput > us.Goodput {
			lost = append(lost, fmt.Sprintf("%s at %gx: %s keeps %.3f of the capacity, default %.3f", f.Work, f.Times, f.Limiter, f.Goodput, us.Goodput))
		}
	}
	if len(lost) > 0 {
		fmt.Fprintf(b, "\nWhere a peer keeps more:\n%s\n", strings.Join(lost, "\n"))
	}
}
