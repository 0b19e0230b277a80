// Structure measures the structure of the library, so that two versions can be compared: it
// runs on any tree of the repository.
//
//	make structure                             this tree
//	cd bench && go run ./structure -tree DIR   another version
//
// It prints a Markdown table. The second column defines each row; a row that
// cannot be measured on a tree shows the reason. Traces, sizes and times come
// from programs (probes.go) that are built in a copy of the tree; the trace to
// Redis needs a redis-server in PATH.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// row is one line of the table.
type row struct {
	fact, definition string
	measure          func(*tree) (string, error)
}

func main() {
	dir := flag.String("tree", "..", "the tree to measure")
	only := flag.String("only", "", "the rows whose fact contains this")
	verbose := flag.Bool("v", false, "print the names behind the numbers to standard error")
	flag.Parse()
	root, err := filepath.Abs(*dir)
	if err == nil {
		err = run(root, *only, *verbose)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func run(root, only string, verbose bool) error {
	t, err := load(root, verbose)
	if err != nil {
		return err
	}
	defer t.close()
	fmt.Println("| fact | definition | measured |\n|---|---|--:|")
	for _, rows := range [][]row{lineRows, declarationRows, knotRows, probeRows} {
		for _, r := range rows {
			if !strings.Contains(r.fact, only) {
				continue
			}
			value, err := r.measure(t)
			if err != nil {
				value = "failed: " + firstLine(err.Error())
			}
			fmt.Printf("| %s | %s | %s |\n", r.fact, r.definition, value)
		}
	}
	return nil
}
