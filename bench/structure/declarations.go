package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

var declarationRows = []row{
	{"declarations in both httpmw and grpcmw", "names of functions, methods and types of more than three lines that both packages declare, exported ones excepted that have the same name on purpose (options, String)", twins},
	{"exported declarations of algo", "exported constants, variables, functions, types and methods of exported types (x/time/rate has 28, otter 87 by the same count)", exported},
}

// declared is a function, method or type at the top level.
type declared struct {
	name  string // with the receiver's type before a dot
	ident *ast.Ident
	node  ast.Node
	lines int
}

// declarations are the functions, methods and types of a package.
func (t *tree) declarations(name string) (all []declared) {
	p := t.pkgs[name]
	if p == nil {
		return nil
	}
	add := func(name string, id *ast.Ident, n ast.Node) {
		all = append(all, declared{name, id, n, p.Fset.Position(n.End()).Line - p.Fset.Position(n.Pos()).Line + 1})
	}
	for _, file := range p.Syntax {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(receiver(d)+d.Name.Name, d.Name, d)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && d.Tok == token.TYPE {
						add(s.Name.Name, s.Name, s)
					}
				}
			}
		}
	}
	return all
}

// receiver is the type of a method with a dot, or "".
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	expr := d.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name + "."
		default:
			return ""
		}
	}
}

func twins(t *tree) (string, error) {
	const longest = 3
	names := map[string]bool{}
	for _, d := range t.declarations("httpmw") {
		names[strings.ToLower(last(d.name))] = d.lines > longest
	}
	var both []string
	for _, d := range t.declarations("grpcmw") {
		name := last(d.name)
		if names[strings.ToLower(name)] && d.lines > longest && !strings.HasPrefix(name, "With") && name != "String" && !slices.Contains(both, name) {
			both = append(both, name)
		}
	}
	t.note("in both", both)
	return fmt.Sprint(len(both)), nil
}

func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func exported(t *tree) (string, error) {
	scope, n := t.pkgs["algo"].Types.Scope(), 0
	for _, name := range scope.Names() {
		obj := scope.Lookup(name)
		if !obj.Exported() {
			continue
		}
		n++
		named, ok := obj.Type().(*types.Named)
		if _, isType := obj.(*types.TypeName); !ok || !isType {
			continue
		}
		for i := range named.NumMethods() {
			if named.Method(i).Exported() {
				n++
			}
		}
	}
	return fmt.Sprint(n), nil
}
