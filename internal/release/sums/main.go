// Sums adds to go.sum of each nested module the checksums of the modules of this repository that it
// requires, as the go command will compute them from the tags: without them no module builds from its tag.
//
//	sums v0.1.0 httpmw/admin programs/gateway    # those that others require first
package main

import (
	"bytes"
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

const own = "github.com/sluice-go/sluice"

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("usage: sums VERSION FOLDER...")
	}
	nested := os.Args[2:]
	for i, folder := range append([]string{""}, nested...) {
		m := module.Version{Path: strings.TrimSuffix(own+"/"+folder, "/"), Version: os.Args[1]}
		lines := sums(m, folder)
		for _, later := range nested[i:] { // the first of all is none of nested
			file := must(modfile.Parse("go.mod", must(os.ReadFile(filepath.Join(later, "go.mod"))), nil))
			if slices.ContainsFunc(file.Require, func(r *modfile.Require) bool { return r.Mod == m }) {
				add(filepath.Join(later, "go.sum"), m.Path, lines)
			}
		}
	}
}

// sums returns the two lines of m, as its files are in the index after git add.
func sums(m module.Version, folder string) []string {
	git("add", "-A")
	tree := git("write-tree")
	archive := must(os.CreateTemp("", "sums-*.zip"))
	defer os.Remove(archive.Name())
	if err := errors.Join(zip.CreateFromVCS(archive, m, git("rev-parse", "--show-toplevel"), tree, folder), archive.Close()); err != nil {
		log.Fatal("sums: ", err)
	}
	text := must(os.ReadFile(filepath.Join(folder, "go.mod")))
	open := func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	return []string{
		m.Path + " " + m.Version + " " + must(dirhash.HashZip(archive.Name(), dirhash.Hash1)),
		m.Path + " " + m.Version + "/go.mod " + must(dirhash.Hash1([]string{"go.mod"}, open)),
	}
}

// add puts lines of a module into a sorted go.sum.
func add(path, of string, lines []string) {
	all := strings.SplitAfter(string(must(os.ReadFile(path))), "\n")
	at := slices.IndexFunc(all, func(l string) bool { name, _, _ := strings.Cut(l, " "); return name == "" || name > of })
	all = slices.Insert(all, at, strings.Join(lines, "\n")+"\n")
	if err := os.WriteFile(path, []byte(strings.Join(all, "")), 0o644); err != nil {
		log.Fatal("sums: ", err)
	}
}

func git(args ...string) string {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		log.Fatalf("sums: git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal("sums: ", err)
	}
	return v
}
