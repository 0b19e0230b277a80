package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/sluice-go/sluice"

// libraries are the packages that users import and their subpackages, without
// the admin page and the telemetry.
var libraries = []string{"algo", "keyfunc", "keyfunc/rpckey", "httpmw", "grpcmw", "adaptive", "adaptive/strategy", "adaptive/signal", "adaptive/throttle", "distributed", "distributed/rules"}

// tree is a version of the library.
type tree struct {
	root    string
	copy    string // the tree again, where probes are built
	verbose bool
	pkgs    map[string]*packages.Package // of the main module, by path below it
	product []string                     // libraries and the internal packages that they import
}

// load type-checks the main module.
func load(root string, verbose bool) (*tree, error) {
	mode := packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo
	all, err := packages.Load(&packages.Config{Mode: mode, Dir: root}, "./...")
	if err != nil {
		return nil, err
	}
	t := &tree{root: root, verbose: verbose, pkgs: map[string]*packages.Package{}}
	for _, p := range all {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		t.pkgs[strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, module), "/")] = p
	}
	for _, name := range libraries {
		t.add(name)
	}
	slices.Sort(t.product)
	t.copy, err = os.MkdirTemp("", "structure")
	if err != nil {
		return nil, err
	}
	_, err = command(root, nil, "sh", "-c", `tar cf - --exclude .git . | tar xf - -C "$0"`, t.copy)
	return t, err
}

func (t *tree) close() { _ = os.RemoveAll(t.copy) }

// add adds a package and the internal ones that it imports.
func (t *tree) add(name string) {
	p := t.pkgs[name]
	if p == nil || slices.Contains(t.product, name) {
		return
	}
	t.product = append(t.product, name)
	for imported := range p.Imports {
		if rest, ok := strings.CutPrefix(imported, module+"/"); ok && strings.HasPrefix(rest, "internal/") {
			t.add(rest)
		}
	}
}

// files are the Go files of a package, without tests, and its Lua files.
func (t *tree) files(name string) []string {
	p := t.pkgs[name]
	if p == nil {
		return nil
	}
	lua, _ := filepath.Glob(filepath.Join(t.root, name, "*.lua"))
	return append(slices.Clone(p.GoFiles), lua...)
}

// note prints names in a verbose run.
func (t *tree) note(what string, names []string) {
	if t.verbose {
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "%s: %s\n", what, strings.Join(names, ", "))
	}
}

// command runs a command and returns its output.
func command(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", name, err, strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "; "))
	}
	return string(out), err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// lines is the number of lines of files.
func lines(files []string) (n int) {
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil {
			n += strings.Count(string(text), "\n")
		}
	}
	return n
}
