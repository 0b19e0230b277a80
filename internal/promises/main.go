// Promises runs every test with its full count and prints a line for each
// promise of the Guarantees table in the documentation of the module: what was
// tried, and for how long. Nothing else is printed but what failed.
//
//	go run ./internal/promises -fuzz 60s
//
// The table says which tests belong to a promise. What a test has tried it
// says itself, in a log line that begins with the promise: "W1: 1000000
// sequences". Every named fuzz target runs for the time of -fuzz. The exit
// status is 1 if a test failed, or one that the table names did not run.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	fuzz := flag.Duration("fuzz", time.Minute, "time for each fuzz target; 0 leaves them out")
	tests := flag.String("run", "", "run only the tests that match, for a look at a part")
	full := flag.Bool("full", true, "the full counts; false: those of every day")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.CommandLine.Parse([]string{"./..."}) // the pattern of packages
	}
	began := time.Now()
	text, err := os.ReadFile(filepath.Join("doc.go"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "promises: run it at the root of the module:", err)
		os.Exit(2)
	}
	table := parse(string(text))
	l := newLedger(table, os.Stdout)
	err = runTests(l, *tests, *full, flag.Args())
	if err == nil && *fuzz > 0 {
		err = runFuzz(l, *tests, *fuzz, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
		os.Exit(2)
	}
	ok := l.close(*tests == "")
	fmt.Printf("%d promises in %v\n", len(table), time.Since(began).Round(time.Second))
	if !ok {
		os.Exit(1)
	}
}
