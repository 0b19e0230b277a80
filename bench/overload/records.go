package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/sluice-go/sluice/bench/host"
)

// results is the content of a file of records.
type results struct {
	machine host.Facts
	cells   []figures // one for each handler, limiter and load: the latest
}

// line is one record: figures, or the machine.
type line struct {
	Machine *host.Facts
	figures
}

func readResults(path string) (r results, err error) {
	file, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return r, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if l.Machine != nil {
			r.machine = *l.Machine
			continue
		}
		r.add(l.figures)
	}
	r.sort()
	return r, lines.Err()
}

func (r *results) add(f figures) {
	at := slices.IndexFunc(r.cells, func(g figures) bool {
		return g.Work == f.Work && g.Limiter == f.Limiter && g.Times == f.Times
	})
	if at < 0 {
		r.cells = append(r.cells, f)
	} else {
		r.cells[at] = f
	}
}

// find is the cell, if it was measured.
func (r results) find(work, limiter string, times float64) (figures, bool) {
	for _, f := range r.cells {
		if f.Work == work && f.Limiter == limiter && f.Times == times && f.Failed == "" {
			return f, true
		}
	}
	return figures{}, false
}

// section is a handler over one transport.
type section struct{ work, transport string }

// sort puts HTTP first, and the handlers and limiters into the order of the matrix, others behind.
func (r *results) sort() {
	var works []string
	for _, g := range matrix() {
		works = append(works, g.work)
	}
	limiters := slices.Concat(rejects, ourLimiters, []string{"default/listener"}, ownParts, peerLimiters, rpcLimiters)
	place := func(order []string, s string) int {
		if at := slices.Index(order, s); at >= 0 {
			return at
		}
		return len(order)
	}
	slices.SortStableFunc(r.cells, func(a, b figures) int {
		return cmp.Or(cmp.Compare(b.Transport, a.Transport), place(works, a.Work)-place(works, b.Work),
			place(limiters, a.Limiter)-place(limiters, b.Limiter), cmp.Compare(a.Times, b.Times))
	})
}

// sections are the sections that have cells.
func (r results) sections() (all []section) {
	for _, f := range r.cells {
		if s := (section{f.Work, f.Transport}); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// of are the cells of a section.
func (r results) of(s section) (cells []figures) {
	for _, f := range r.cells {
		if f.Work == s.work && f.Transport == s.transport {
			cells = append(cells, f)
		}
	}
	return cells
}
