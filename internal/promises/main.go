// Promises runs every test with its full count and prints a line for each
// promise of the Guarantees table in the documentation of the module: what was
// tried, and for how long. Nothing else is printed but what failed, and at the
// end how long it took.
//
//	go run ./internal/promises -fuzz 60s
//
// The table says which tests belong to a promise. What a test has tried it
// says itself, in a log line that begins with the promise: "W1: 1000000
// sequences". Every fuzz target runs for the time of -fuzz. The exit status is
// 1 if a test failed or was skipped, or one that the table names did not run, and
// 2 if they could not be run.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	fuzz := flag.Duration("fuzz", time.Minute, "time for each fuzz target; 0 leaves them out")
	tests := flag.String("run", "", "run only the tests that match, for a look at a part")
	full := flag.Bool("full", true, "the full counts; false: those of every day")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	began := time.Now()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		fmt.Fprintln(os.Stderr, "promises: run it at the root of the module:", err)
		os.Exit(2)
	}
	table := parse(string(text))
	l := newLedger(table, os.Stdout)
	l.fuzzed = *fuzz > 0
	err = runTests(l, *tests, *full, packages)
	if err == nil && l.fuzzed {
		err = runFuzz(l, *tests, *fuzz, packages)
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
