package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// knot is the largest set of files of a package that all need each other, by the declarations and
// methods that they use.
func (t *tree) knot(name string) (value string, files []string) {
	p := t.pkgs[name]
	file := func(at token.Pos) string {
		return strings.TrimSuffix(filepath.Base(p.Fset.Position(at).Filename), ".go")
	}
	needs := map[string]map[string]bool{}
	for _, f := range p.Syntax {
		from := map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if obj := p.TypesInfo.Uses[id]; ok && obj != nil && obj.Pkg() == p.Types {
				if _, method := obj.(*types.Func); method || obj.Parent() == p.Types.Scope() {
					from[file(obj.Pos())] = true
				}
			}
			return true
		})
		needs[file(f.Pos())] = from
	}
	files = knotOf(needs)
	return fmt.Sprintf("%d of %d", len(files), len(needs)), files
}

// knotOf returns the largest set of nodes that all reach each other.
func knotOf(reach map[string]map[string]bool) (largest []string) {
	for via := range reach {
		reach[via][via] = true
		for from := range reach {
			if reach[from][via] {
				maps.Copy(reach[from], reach[via])
			}
		}
	}
	for a := range reach {
		knot := slices.DeleteFunc(slices.Collect(maps.Keys(reach[a])), func(b string) bool { return !reach[b][a] })
		if len(knot) > len(largest) {
			largest = knot
		}
	}
	return largest
}

// twins are names that httpmw and grpcmw both declare.
func twins(t *tree) (value any, names []string) {
	over, names := t.long("httpmw"), t.long("grpcmw")
	names = slices.DeleteFunc(names, func(name string) bool {
		same := func(other string) bool { return strings.EqualFold(name, other) }
		return !slices.ContainsFunc(over, same) || strings.HasPrefix(name, "With") || name == "String"
	})
	return len(names), names
}

// long are the names of the functions, methods and types of more than three lines of a package.
func (t *tree) long(pkg string) (names []string) {
	p := t.pkgs[pkg]
	for _, f := range p.Syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			var id *ast.Ident
			function, outer := n.(*ast.FuncDecl)
			if outer {
				id = function.Name
			} else if s, ok := n.(*ast.TypeSpec); ok {
				id = s.Name
			}
			if id != nil && p.Fset.Position(n.End()).Line-p.Fset.Position(n.Pos()).Line >= 3 && !slices.Contains(names, id.Name) {
				names = append(names, id.Name)
			}
			return !outer // what is within is no declaration of the package
		})
	}
	return names
}
