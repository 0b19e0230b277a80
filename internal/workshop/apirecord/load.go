// Package apirecord compares the exported declarations of this module's packages
// with a record of them in files, so that no change of the public API goes
// unnoticed.
package apirecord

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// Package is a public package of a module.
type Package struct {
	types *types.Package
	dir   string
	files []string // names of the source files
}

// Name returns the path of the package below the path of the module, or the
// last element of the module's path for the root.
func (p *Package) Name(root string) string {
	if name, ok := strings.CutPrefix(p.types.Path(), root+"/"); ok {
		return name
	}
	return path.Base(root)
}

// listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir, Name, Export string
	GoFiles                       []string
	DepOnly                       bool
}

// Load returns the public packages of the module in the current directory: all
// but commands, examples and internal ones.
func Load() ([]*Package, error) { return load(isPublic) }

func load(public func(importPath string) bool) ([]*Package, error) {
	all, err := list()
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var packages []*Package
	for _, l := range all {
		if l.DepOnly || l.Name == "main" || !public(l.ImportPath) || len(l.GoFiles) == 0 {
			continue
		}
		t, err := from.Import(l.ImportPath)
		if err != nil {
			return nil, fmt.Errorf("apirecord: %s: %w", l.ImportPath, err)
		}
		packages = append(packages, &Package{t, l.Dir, l.GoFiles})
	}
	return packages, nil
}

// list runs go list. The export data comes from the build cache, which has separate entries
// for "go test -race".
func list() (all []listed, err error) {
	cmd := exec.Command("go", "list", "-race="+strconv.FormatBool(cases.Race), "-export", "-deps",
		"-json=ImportPath,Dir,Name,Export,GoFiles,DepOnly", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for d := json.NewDecoder(out); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, cmd.Wait()
		} else if err != nil {
			return nil, errors.Join(err, cmd.Wait())
		}
		all = append(all, l)
	}
}

func isPublic(importPath string) bool {
	for _, dir := range strings.Split(importPath, "/") {
		if dir == "internal" || dir == "examples" {
			return false
		}
	}
	return true
}
