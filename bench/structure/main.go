// Structure measures the structure of the library, so that two versions can be compared: it
// runs on any tree of the repository.
//
//	make structure                             this tree
//	cd bench && go run ./structure -tree DIR   another version
//
// It prints a Markdown table, with the names behind each number. A row that cannot be measured on
// a tree shows the reason. What tests of the root package enforce has no row: imports, linked
// modules, exported names, the functions that ARCHITECTURE.md names.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// row is a row of the table. A failed measurement panics.
type row struct {
	fact    string
	measure func(*tree) (value any, names []string)
}

func rows() (all []row) {
	all = []row{
		{"lines of the Go files, without tests, of algo, keyfunc, httpmw, grpcmw, adaptive, distributed and their subpackages rpckey and rules",
			func(t *tree) (any, []string) { return t.lines(t.libraries()), nil }},
		{"the same with the internal packages that they import", func(t *tree) (any, []string) {
			all := t.withInternal(t.libraries())
			return t.lines(all), all
		}},
		{"names of functions, methods and types of more than three lines in both httpmw and grpcmw, options and String excepted", twins},
	}
	for _, name := range []string{"algo", "httpmw", "grpcmw", "adaptive", "distributed", "internal/admission"} {
		all = append(all, row{"files of " + name + " that all need each other, of the files in all", func(t *tree) (any, []string) { return t.knot(name) }})
	}
	return all
}

func main() {
	dir := flag.String("tree", "..", "the tree to measure")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	t, err := load(root)
	if err != nil {
		return err
	}
	fmt.Println("| fact | measured | names |\n|---|--:|---|")
	for _, r := range rows() {
		value, names := r.try(t)
		slices.Sort(names)
		fmt.Printf("| %s | %v | %s |\n", r.fact, value, strings.Join(names, " "))
	}
	return nil
}

func (r row) try(t *tree) (value any, names []string) {
	defer func() {
		if p := recover(); p != nil {
			first, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			value, names = "failed: "+first, nil
		}
	}()
	return r.measure(t)
}
