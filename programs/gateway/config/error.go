package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// InFile gives messages of the library the names of the file in place of those of Go.
var InFile = strings.NewReplacer(", or set IPConfig.TrustAll", "", "IPConfig.TrustAll", "trust in every sender",
	" (algo.DenyAll denies everything)", "", "MaxKeys", "keys of the limit", "max keys is", "keys is")

// Error is one mistake in a file, and its place.
type Error struct {
	File   string
	Line   int    // from 1; 0 if it is nowhere in particular
	Column int    // from 1, in characters
	Field  string // such as routes[1].limits[0].limit; empty for broken YAML
	Reason string
}

// Error returns the place and the fault, in the form that editors jump to.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	return b.String() + ": " + e.Reason
}

// Errors is everything that is wrong with a file, from its top to its end.
type Errors []*Error

// Error has a line for each.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (es Errors) sort() {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
