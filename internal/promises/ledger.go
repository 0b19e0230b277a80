package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// promise is a row of the table.
type promise struct {
	id    string
	tests []string // names of tests and fuzz targets
}

var (
	rowOf    = regexp.MustCompile(`^//\t([A-Z][0-9])  `)
	namesOf  = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	figureOf = regexp.MustCompile(`(?:^|\s)([A-Z][0-9]): (.+)`)
)

// parse reads the table in the text of doc.go: a row begins with its id, and
// the tests of a row are named in it.
func parse(text string) (table []promise) {
	for line := range strings.Lines(text) {
		if m := rowOf.FindStringSubmatch(line); m != nil {
			table = append(table, promise{id: m[1]})
		}
		if n := len(table); n > 0 && strings.HasPrefix(line, "//\t") {
			table[n-1].tests = append(table[n-1].tests, namesOf.FindAllString(line, -1)...)
		}
	}
	return table
}

// result is how a test ended.
type result struct {
	ok      bool
	took    time.Duration
	figures []string // "id: text"
}

// ledger collects results and prints a promise once all of its tests ended.
type ledger struct {
	table   []promise
	out     io.Writer
	results map[string]result
	printed map[string]bool
	fuzzed  bool // targets will be fuzzed: their corpus alone is not enough
	failed  bool
}

func newLedger(table []promise, out io.Writer) *ledger {
	return &ledger{table: table, out: out, results: map[string]result{}, printed: map[string]bool{}}
}

// say prints.
func (l *ledger) say(format string, args ...any) { _, _ = fmt.Fprintf(l.out, format, args...) }

// note takes the result of one test. Two packages may have one of that name:
// then both count.
func (l *ledger) note(name string, r result) {
	if was, ok := l.results[name]; ok {
		r.ok = r.ok && was.ok
		r.took += was.took
		r.figures = append(was.figures, r.figures...)
	}
	l.results[name] = r
	l.failed = l.failed || !r.ok
	for _, p := range l.table {
		if slices.Contains(p.tests, name) && !l.printed[p.id] && len(l.missing(p)) == 0 {
			l.print(p)
		}
	}
}

func (l *ledger) missing(p promise) []string {
	return slices.DeleteFunc(slices.Clone(p.tests), func(name string) bool { _, ok := l.results[name]; return ok })
}

func (l *ledger) print(p promise) {
	l.printed[p.id] = true
	verdict, took := "ok", time.Duration(0)
	var figures []string
	for _, name := range p.tests {
		r, ran := l.results[name]
		took += r.took
		if !ran || !r.ok {
			verdict = "FAILED"
		}
		for _, f := range r.figures {
			if text, mine := strings.CutPrefix(f, p.id+": "); mine {
				figures = append(figures, text)
			}
		}
	}
	text := strings.Join(grouped(figures), "; ")
	if text == "" {
		text = strings.Join(p.tests, ", ")
	}
	l.say("%s  %s   %s %.1fs\n", p.id, text, verdict, took.Seconds())
}

// grouped writes what occurs more than once only once, with the number before
// it.
func grouped(figures []string) (out []string) {
	times := map[string]int{}
	for _, f := range figures {
		times[f]++
	}
	for _, f := range figures {
		switch n := times[f]; {
		case n == 1:
			out = append(out, f)
		case n > 1:
			out = append(out, fmt.Sprintf("%d x %s", n, f))
		}
		delete(times, f)
	}
	return out
}

// close prints what is left, and reports whether every promise was kept. If not
// all tests were asked for, promises with tests that did not run are left out.
func (l *ledger) close(all bool) bool {
	for _, p := range l.table {
		if l.printed[p.id] {
			continue
		}
		missing := l.missing(p)
		switch {
		case all:
			l.say("%s  did not run: %s   FAILED\n", p.id, strings.Join(missing, ", "))
			l.failed = true
		case len(missing) < len(p.tests):
			p.tests = slices.DeleteFunc(p.tests, func(name string) bool { return slices.Contains(missing, name) })
			l.print(p)
		}
	}
	return !l.failed
}
