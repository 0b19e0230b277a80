package apirecord

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// Declarations returns a line for each exported constant, variable, function,
// type, struct field and method, sorted. Parameters have no names.
func (p *Package) Declarations() []string {
	var lines []string
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		if o := scope.Lookup(name); o.Exported() {
			lines = append(lines, p.declaration(o)...)
		}
	}
	slices.Sort(lines)
	return lines
}

func (p *Package) declaration(o types.Object) []string {
	switch o := o.(type) {
	case *types.Const:
		return []string{fmt.Sprintf("const %s %s = %s", o.Name(), p.text(o.Type()), o.Val())}
	case *types.Var:
		return []string{"var " + o.Name() + " " + p.text(o.Type())}
	case *types.Func:
		return []string{"func " + o.Name() + p.signature(o.Signature())}
	case *types.TypeName:
		return p.typeName(o)
	}
	return nil
}

func (p *Package) typeName(o *types.TypeName) []string {
	name := "type " + o.Name()
	if o.IsAlias() {
		return []string{name + " = " + p.text(types.Unalias(o.Type()))}
	}
	lines := p.underlying(name, o.Type().Underlying())
	if types.IsInterface(o.Type()) {
		return lines
	}
	for _, m := range methods(o.Type()) {
		receiver := o.Name()
		if _, pointer := m.Recv().(*types.Pointer); pointer {
			receiver = "*" + receiver
		}
		lines = append(lines, fmt.Sprintf("method (%s) %s%s", receiver, m.Obj().Name(), p.signature(m.Obj().Type().(*types.Signature))))
	}
	return lines
}

// underlying returns the lines of a type without its methods.
func (p *Package) underlying(name string, u types.Type) []string {
	switch u := u.(type) {
	case *types.Struct:
		lines := []string{name + " struct"}
		for f := range u.Fields() {
			if f.Exported() {
				lines = append(lines, name+" struct, "+f.Name()+" "+p.text(f.Type()))
			}
		}
		return lines
	case *types.Interface:
		lines := []string{name + " interface"}
		for m := range u.Methods() {
			if !m.Exported() {
				lines = append(lines, name+" interface, with unexported methods")
				continue
			}
			lines = append(lines, name+" interface, "+m.Name()+p.signature(m.Signature()))
		}
		return slices.Compact(lines)
	case *types.Signature:
		return []string{name + " func" + p.signature(u)}
	}
	return []string{name + " " + p.text(u)}
}

// methods returns the exported methods that a user of t or *t may call. Their
// receiver is a pointer if only *t has them.
func methods(t types.Type) (found []*types.Selection) {
	byValue := types.NewMethodSet(t)
	for s := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if !s.Obj().Exported() {
			continue
		}
		if v := byValue.Lookup(s.Obj().Pkg(), s.Obj().Name()); v != nil {
			s = v
		}
		found = append(found, s)
	}
	return found
}

// signature writes parameters and results without names.
func (p *Package) signature(s *types.Signature) string {
	s = types.NewSignatureType(nil, nil, nil, unnamed(s.Params()), unnamed(s.Results()), s.Variadic())
	return strings.TrimPrefix(p.text(s), "func")
}

func unnamed(t *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range t.Variables() {
		vars = append(vars, types.NewParam(0, nil, "", v.Type()))
	}
	return types.NewTuple(vars...)
}

// text writes a type, with the names of packages other than p.
func (p *Package) text(t types.Type) string {
	return types.TypeString(t, func(other *types.Package) string {
		if other == p.types {
			return ""
		}
		return other.Name()
	})
}
