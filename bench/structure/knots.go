package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"
	"strings"
)

var knotRows = func() (rows []row) {
	for _, name := range []string{"algo", "httpmw", "grpcmw", "adaptive", "distributed", "internal/admission"} {
		rows = append(rows, row{
			"knot of " + name,
			"largest set of files that all need each other, by the declarations and methods that they use; of the files in all",
			func(t *tree) (string, error) { return t.knot(name) },
		})
	}
	return rows
}()

// knot returns the size of the largest strongly connected set of files.
func (t *tree) knot(name string) (string, error) {
	p := t.pkgs[name]
	if p == nil {
		return "", fmt.Errorf("no package %s", name)
	}
	needs := map[string]map[string]bool{}
	for _, f := range p.Syntax {
		from := p.Fset.Position(f.Pos()).Filename
		needs[from] = map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			obj := p.TypesInfo.Uses[id]
			if obj == nil || obj.Pkg() != p.Types {
				return true
			}
			if _, method := obj.(*types.Func); method || obj.Parent() == p.Types.Scope() {
				needs[from][p.Fset.Position(obj.Pos()).Filename] = true
			}
			return true
		})
	}
	largest := knotOf(needs)
	for i, f := range largest {
		largest[i] = strings.TrimSuffix(filepath.Base(f), ".go")
	}
	t.note("knot of "+name, largest)
	return fmt.Sprintf("%d of %d", len(largest), len(needs)), nil
}

// knotOf returns the largest set of nodes that all reach each other.
func knotOf(needs map[string]map[string]bool) (largest []string) {
	reach := map[string]map[string]bool{}
	for from := range needs {
		seen := map[string]bool{}
		var visit func(string)
		visit = func(f string) {
			if !seen[f] {
				seen[f] = true
				for next := range needs[f] {
					visit(next)
				}
			}
		}
		visit(from)
		reach[from] = seen
	}
	for a := range reach {
		var knot []string
		for b := range reach[a] {
			if reach[b][a] {
				knot = append(knot, b)
			}
		}
		if len(knot) > len(largest) {
			largest = knot
		}
	}
	return largest
}
