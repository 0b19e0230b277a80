package sluice_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// needNoExample are getters, and methods that other packages call for the user.
var needNoExample = map[string]string{
	"String": "called by fmt", "Error": "called by fmt", "Unwrap": "called by errors", "Is": "called by errors",
	"MarshalText": "called by encoding/json", "MarshalJSON": "called by encoding/json", "UnmarshalJSON": "called by encoding/json",
	"FlushError": "called by http.ResponseController", "Accept": "called by net/http", "Read": "called by strategies", "Observe": "called by limiters",
	"About": "called by algo.About", "Peek": "called by algo.Peek", "Batches": "called by AcquireAll", "AcquireBatch": "called by AcquireAll", "PeekBatch": "called by AcquireAll",
	"Choose": "called by AcquireAll", "ReleaseAfterWait": "called by leases",
	"Len": "a getter", "Overflowed": "a getter", "Cap": "a getter", "IsOn": "a getter", "Client": "a getter", "Prefix": "a getter", "Limit": "a getter", "InFlight": "a getter",
	"Probability": "a getter", "MaxPass": "a getter", "MaxRate": "a getter", "MinRT": "a getter",
}

// TestEveryVerbHasAnExample: each exported function and method, constructors,
// options and actions alike, is called in a compiled Example of its package, one
// with an output that is compared. Methods are distinguished by name only: all
// limiters have the same.
func TestEveryVerbHasAnExample(t *testing.T) {
	for _, dir := range []string{"algo", "algo/guard", "algo/meter", "adaptive", "distributed", "keyfunc", "keyfunc/rpckey", "httpmw", "grpcmw"} {
		t.Run(dir, func(t *testing.T) {
			shown := called(t, dir)
			require.NotEmpty(t, shown)
			var missing []string
			for _, verb := range verbs(t, dir) {
				if !shown[verb] && needNoExample[verb] == "" {
					missing = append(missing, verb)
				}
			}
			require.Empty(t, missing, "no Example of package %s calls these", dir)
		})
	}
}

// parsed are the files of dir that are tests, or those that are not.
func parsed(t *testing.T, dir string, tests bool) (files []*ast.File) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	fset := token.NewFileSet()
	for _, e := range entries {
		name := e.Name()
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	return files
}

// verbs are the exported functions of dir and the methods that its users can
// call, by name.
func verbs(t *testing.T, dir string) (names []string) {
	files := parsed(t, dir, false)
	public := publicTypes(files)
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Name.IsExported() && (fn.Recv == nil || public[typeName(fn.Recv.List[0].Type)]) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// publicTypes are those that are exported, and those that are embedded in one,
// whose methods are promoted.
func publicTypes(files []*ast.File) map[string]bool {
	embeds := map[string][]string{}
	var exported []string
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if spec.Name.IsExported() {
				exported = append(exported, spec.Name.Name)
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if len(field.Names) == 0 {
						embeds[spec.Name.Name] = append(embeds[spec.Name.Name], typeName(field.Type))
					}
				}
			}
			return true
		})
	}
	public := map[string]bool{}
	for len(exported) > 0 {
		name := exported[0]
		exported = exported[1:]
		if !public[name] {
			public[name] = true
			exported = append(exported, embeds[name]...)
		}
	}
	return public
}

// typeName is the name of a type without pointer, package and arguments.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// called are the names that the Examples of dir select, of packages and values,
// and so do the methods of types that stand among them.
func called(t *testing.T, dir string) map[string]bool {
	names := map[string]bool{}
	note := func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			names[s.Sel.Name] = true
		}
		return true
	}
	for _, f := range parsed(t, dir, true) {
		examples := doc.Examples(f)
		for _, e := range examples {
			if e.Output != "" || e.EmptyOutput {
				ast.Inspect(e.Code, note)
			}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && len(examples) > 0 {
				ast.Inspect(fn, note)
			}
		}
	}
	return names
}

// TestExamplesAreShort: the pages list every example and program, and an example has at most 300
// lines besides tests.
func TestExamplesAreShort(t *testing.T) {
	for _, folder := range []string{"examples", "programs"} {
		page := read(t, folder+"/README.md")
		entries, err := os.ReadDir(folder)
		require.NoError(t, err)
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			require.Contains(t, page, "("+e.Name()+")")
			lines := 0
			files(t, folder+"/"+e.Name(), func(path string) {
				if folder == "examples" && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
					lines += strings.Count(read(t, path), "\n")
				}
			})
			require.LessOrEqual(t, lines, 300, e.Name())
		}
	}
}
