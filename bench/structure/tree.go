package main

import (
	"bytes"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/sluice-go/sluice/algo"
)

const module = "github.com/sluice-go/sluice"

// tree is a version of the library.
type tree struct {
	pkgs map[string]*packages.Package // of the main module, by path below it
}

// load type-checks the main module.
func load(root string) (*tree, error) {
	mode := packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo
	all, err := packages.Load(&packages.Config{Mode: mode, Dir: root}, "./...")
	if err != nil {
		return nil, err
	}
	t := &tree{pkgs: map[string]*packages.Package{}}
	for _, p := range all {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		t.pkgs[strings.TrimPrefix(p.PkgPath, module+"/")] = p
	}
	return t, nil
}

// libraries are the packages that users import and their subpackages, without the admin page and
// the telemetry.
func (t *tree) libraries() []string {
	all := []string{"algo", "keyfunc", "keyfunc/rpckey", "httpmw", "grpcmw", "adaptive", "adaptive/strategy", "adaptive/signal", "adaptive/throttle", "distributed", "distributed/rules"}
	return slices.DeleteFunc(all, func(name string) bool { return t.pkgs[name] == nil })
}

// withInternal adds the internal packages that all of them import.
func (t *tree) withInternal(all []string) []string {
	for i := 0; i < len(all); i++ { // all grows
		for imported := range t.pkgs[all[i]].Imports {
			name := strings.TrimPrefix(imported, module+"/")
			if strings.HasPrefix(name, "internal/") && t.pkgs[name] != nil && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// lines is the number of lines of the Go files of packages.
func (t *tree) lines(packages []string) (n int) {
	for _, name := range packages {
		for _, f := range t.pkgs[name].GoFiles {
			n += bytes.Count(algo.Must(os.ReadFile(f)), []byte("\n"))
		}
	}
	return n
}
