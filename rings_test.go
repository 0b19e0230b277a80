package sluice_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	ground = iota // knows no limiter
	ring1         // what most users need
	ring2         // over the exported names of ring 1
	users         // examples and guides: exported names only
)

// rings is the ring of each package of the module, and what it may import beside the packages
// further in: its ground, neighbors of ring 2, and the exceptions in ring 1.
var rings = map[string]struct {
	ring int
	may  string
}{
	"algo":                        {ring1, "internal/cause internal/decide internal/keystore internal/warning internal/option"},
	"algo/telemetry":              {ring1, ""},
	"keyfunc":                     {ring1, "internal/keytext internal/warning"},
	"keyfunc/rpckey":              {ring1, "internal/keytext"},
	"internal/inflight":           {ring1, ""},
	"internal/admission":          {ring1, "internal/cause internal/keytext internal/warning internal/option"},
	"httpmw":                      {ring1, "internal/warning internal/option"},
	"grpcmw":                      {ring1, "internal/cause internal/warning internal/option"},
	"adaptive":                    {ring1, "internal/cause internal/class internal/interleave internal/keystore internal/machine internal/wiring"},
	"distributed":                 {ring1, "internal/cause internal/decide algo/learn algo/shares internal/option"},
	"algo/algotest":               {ring2, "internal/workshop/cases internal/interleave internal/keystore"},
	"algo/backtest":               {ring2, "internal/decide"},
	"algo/classic":                {ring2, ""},
	"algo/guard":                  {ring2, "internal/decide internal/keystore"},
	"algo/learn":                  {ring2, "internal/decide"},
	"algo/marker":                 {ring2, "internal/decide internal/keystore"},
	"algo/meter":                  {ring2, "internal/warning"},
	"algo/prepaid":                {ring2, ""},
	"algo/reload":                 {ring2, "internal/warning"},
	"algo/shares":                 {ring2, "internal/decide"},
	"algo/telemetry/eventlog":     {ring2, "internal/warning internal/option"},
	"adaptive/signal":             {ring2, "internal/cgroup internal/machine internal/wiring internal/option"},
	"adaptive/strategy":           {ring2, "internal/cause internal/machine internal/wiring adaptive/signal"},
	"adaptive/throttle":           {ring2, "internal/machine internal/option"},
	"distributed/rules":           {ring2, "internal/warning internal/option"},
	"internal/pacing":             {ring2, "internal/serverwait algo/learn"}, // of both clients
	"httpmw/client":               {ring2, "internal/pacing internal/serverwait algo/learn internal/option"},
	"httpmw/early":                {ring2, "internal/warning"},
	"httpmw/hints":                {ring2, "internal/class"},
	"httpmw/metered":              {ring2, "algo/meter internal/warning"},
	"httpmw/rpc":                  {ring2, ""},
	"grpcmw/client":               {ring2, "internal/pacing internal/serverwait algo/learn internal/option"},
	"grpcmw/early":                {ring2, "internal/option"},
	"grpcmw/hints":                {ring2, "internal/class"},
	"internal/workshop/fakes":     {users, ""},                            // for the tests of several packages
	"internal/workshop/storetest": {users, "internal/workshop/redistest"}, // for the tests of two transports
	"internal/workshop/trees":     {users, ""},                            // for tests here and on Redis
}

// ringOf returns the row of a package.
func ringOf(pkg string) (ring int, may []string, known bool) {
	if r, ok := rings[pkg]; ok {
		return r.ring, strings.Fields(r.may), true
	}
	if strings.Contains("/"+pkg, "/internal/") { // beneath a package, the compiler keeps it
		return ground, nil, true
	}
	switch first, _, _ := strings.Cut(pkg, "/"); first {
	case "examples", "docs", ".":
		return users, nil, true
	}
	return 0, nil, false
}

// outward returns the imports that the rings forbid.
func outward(imports map[string][]string) (wrong []string) {
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		ring, may, known := ringOf(pkg)
		if !known {
			wrong = append(wrong, pkg+" has no row")
			continue
		}
		for _, other := range imports[pkg] {
			to, _, known := ringOf(other)
			private := strings.HasPrefix(other, "internal/") && ring != to
			further := known && !private && (to < ring || to == ring && ring <= ring1)
			if !further && !slices.Contains(may, other) {
				wrong = append(wrong, pkg+" imports "+other)
			}
		}
	}
	return wrong
}

// importsOf parses the files of the module without tests.
func importsOf(t *testing.T) (imports map[string][]string, files map[string]*ast.File) {
	imports, files = map[string][]string{}, map[string]*ast.File{}
	require.NoError(t, filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".":
			if m, _ := filepath.Glob(filepath.Join(name, "go.mod")); len(m) > 0 || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return filepath.SkipDir
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			name = filepath.ToSlash(name)
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files[name] = f
			add(imports, path.Dir(name), f)
		}
		return nil
	}))
	return imports, files
}

// add notes the imports of a file that are in the module.
func add(imports map[string][]string, pkg string, f *ast.File) {
	imports[pkg] = append(imports[pkg], []string{}...)
	for _, i := range f.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		if other, ours := strings.CutPrefix(p, "github.com/sluice-go/sluice/"); ours {
			imports[pkg] = append(imports[pkg], other)
		}
	}
}

// TestRings: imports go from ring 2 to ring 1 to the ground, and to no more of it than the
// table says.
func TestRings(t *testing.T) {
	imports, files := importsOf(t)
	require.Empty(t, outward(imports))
	for pkg := range rings {
		require.Contains(t, imports, pkg, "a row without a package")
	}
	for _, planted := range []struct{ pkg, of, says string }{
		{"algo", "algo/guard", "algo imports algo/guard"},
		{"algo/classic", "internal/keystore", "algo/classic imports internal/keystore"},
		{"algo/classic", "algo/meter", "algo/classic imports algo/meter"},
		{"internal/decide", "algo", "internal/decide imports algo"},
		{"examples/http", "internal/admission", "examples/http imports internal/admission"},
		{"algo/new", "algo", "algo/new has no row"},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport _ \"github.com/sluice-go/sluice/"+planted.of+"\"", 0)
		require.NoError(t, err)
		with := maps.Clone(imports)
		add(with, planted.pkg, f)
		require.Equal(t, []string{planted.says}, outward(with))
	}
	for name, f := range files {
		if path.Dir(name) == "httpmw" || path.Dir(name) == "internal/inflight" {
			require.Empty(t, besideTheHandler(f), name)
		}
	}
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc x() { go y(); _, _ = r.Body.Read(p); _, _ = io.ReadAll(r.Body) }", 0)
	require.NoError(t, err)
	require.Len(t, besideTheHandler(f), 3)
}

// besideTheHandler returns what a middleware must not have: a goroutine, or a reader of
// bodies, that would run beside the handlers around it.
func besideTheHandler(f *ast.File) (found []string) {
	isBody := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Body"
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "go")
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if ok && s.Sel.Name == "Read" && isBody(s.X) || ok && strings.HasPrefix(s.Sel.Name, "Read") && slices.ContainsFunc(n.Args, isBody) {
				found = append(found, s.Sel.Name)
			}
		}
		return true
	})
	return found
}
