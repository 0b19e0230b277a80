package algo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePackagePageNamesAll: the package comment names each exported type and function once,
// and errors and constants without a type of the package.
func TestThePackagePageNamesAll(t *testing.T) {
	doc, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	require.NoError(t, err)
	page := doc.Doc.Text()
	page, _, _ = strings.Cut(page, "# When not")
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for name := range declared(f) {
			require.Len(t, regexp.MustCompile(`\[`+name+`\]`).FindAllString(page, -1), 1, name)
		}
	}
}

// declared are the exported names of f, without methods and the values of enumerations.
func declared(f *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = d.Recv == nil && d.Name.IsExported()
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					names[s.Name.Name] = s.Name.IsExported()
				}
			}
		}
	}
	for name, exported := range names {
		if !exported {
			delete(names, name)
		}
	}
	return names
}
