package main

import (
	"fmt"
	"slices"
	"strings"
)

// base is the library of a try, without the mode in which it was used; "" for
// the further tries of sluice, which are not its column.
func base(library string) string {
	first, mode, _ := strings.Cut(library, " ")
	if first == sluice && mode != "" {
		return ""
	}
	return first
}

// matrices show the result of each attack on each library, in two tables: rate
// limiters and in-flight limiters have few attacks in common.
func (r report) matrices(b *strings.Builder) {
	if len(r.attacks) == 0 {
		return
	}
	b.WriteString("## Attacks\n\nEach cell is a run of this program. `-`: the library has nothing that the attack could be done to. " +
		"The attack, the condition for holding, and the figures are below.\n\n")
	var rates, inFlight []attacked
	for _, a := range r.attacks {
		if a.inFlight {
			inFlight = append(inFlight, a)
		} else {
			rates = append(rates, a)
		}
	}
	matrix(b, rates)
	matrix(b, inFlight)
}

// matrix has a column for each library.
func matrix(b *strings.Builder, attacks []attacked) {
	if len(attacks) == 0 {
		return
	}
	var libraries []string
	for _, a := range attacks {
		for _, v := range a.verdicts {
			if name := base(v.library); name != "" && !slices.Contains(libraries, name) {
				libraries = append(libraries, name)
			}
		}
	}
	fmt.Fprintf(b, "| attack | %s |\n|---|%s\n", strings.Join(libraries, " | "), strings.Repeat(":-:|", len(libraries)))
	fell := map[string]int{}
	for _, a := range attacks {
		fmt.Fprintf(b, "| [%s](#%s) |", a.title, a.id)
		for _, name := range libraries {
			cell := a.cell(name)
			if strings.Contains(cell, "falls") {
				fell[name]++
			}
			fmt.Fprintf(b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	b.WriteString("| falls to |")
	for _, name := range libraries {
		fmt.Fprintf(b, " %d |", fell[name])
	}
	b.WriteString("\n\n")
}

func (a attacked) cell(library string) string {
	for _, v := range a.verdicts {
		if base(v.library) == library {
			return v.verdict()
		}
	}
	return "-"
}

func (v verdict) verdict() string {
	if v.holds {
		return "holds"
	}
	return "**falls**"
}

// details are the figures behind the matrix.
func (r report) details(b *strings.Builder) {
	for _, a := range r.attacks {
		fmt.Fprintf(b, "<a id=\"%s\"></a>\n### %s\n\n%s\nHolds: %s.\n\n| | | |\n|---|---|---|\n", a.id, a.title, a.does, a.holds)
		for _, v := range a.verdicts {
			fmt.Fprintf(b, "| %s | %s | %s |\n", v.library, v.verdict(), strings.ReplaceAll(v.figure, "|", "\\|"))
		}
		b.WriteString("\n")
	}
}
