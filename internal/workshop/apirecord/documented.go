package apirecord

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
)

// Hidden returns the exported methods that a user may call and that the
// documentation does not show, as Type.Method, and the exported functions that
// return a type that users cannot name. The documentation comes from go/doc, as
// on pkg.go.dev: it shows methods that are promoted once, from an embedded
// struct that is not exported. Methods of an exported embedded type count as
// shown.
func (p *Package) Hidden() ([]string, error) {
	shown, err := p.shown()
	if err != nil {
		return nil, err
	}
	var hidden []string
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		o := scope.Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o := o.(type) {
		case *types.Func:
			if result := p.unexportedResult(o); result != "" {
				hidden = append(hidden, name+" returns "+result)
			}
		case *types.TypeName:
			hidden = append(hidden, hiddenMethods(o, shown)...)
		}
	}
	return hidden, nil
}

// hiddenMethods returns the methods of a type that are not shown.
func hiddenMethods(o *types.TypeName, shown map[string]bool) (hidden []string) {
	if o.IsAlias() || types.IsInterface(o.Type()) {
		return nil
	}
	for _, m := range methods(o.Type()) {
		if id := o.Name() + "." + m.Obj().Name(); !shown[id] && !throughExported(m) {
			hidden = append(hidden, id)
		}
	}
	return hidden
}

// shown returns the methods in the documentation of each type.
func (p *Package) shown() (map[string]bool, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.files {
		f, err := parser.ParseFile(fset, filepath.Join(p.dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	d, err := doc.NewFromFiles(fset, files, p.types.Path())
	if err != nil {
		return nil, err
	}
	shown := map[string]bool{}
	for _, t := range d.Types {
		for _, m := range t.Methods {
			shown[t.Name+"."+m.Name] = true
		}
	}
	return shown, nil
}

// throughExported reports whether a method is promoted from an embedded type
// that is exported.
func throughExported(s *types.Selection) bool {
	t := s.Recv()
	for _, i := range s.Index()[:len(s.Index())-1] {
		if pointer, ok := t.Underlying().(*types.Pointer); ok {
			t = pointer.Elem()
		}
		f := t.Underlying().(*types.Struct).Field(i)
		if f.Exported() {
			return true
		}
		t = f.Type()
	}
	return false
}

// unexportedResult returns the first result type that users cannot name.
func (p *Package) unexportedResult(f *types.Func) string {
	for r := range f.Signature().Results().Variables() {
		t := r.Type()
		if pointer, ok := t.(*types.Pointer); ok {
			t = pointer.Elem()
		}
		if named, ok := t.(*types.Named); ok && named.Obj().Pkg() == p.types && !named.Obj().Exported() {
			return fmt.Sprint(named.Obj().Name())
		}
	}
	return ""
}
