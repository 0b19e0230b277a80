// Mutants plants known faults in the library, one at a time, and runs the
// tests that should find them: a promise whose test cannot fail is no promise.
//
//	go run ./internal/mutants                  all faults
//	go run ./internal/mutants -only 'CAS|TTL'  those whose name or file matches
//
// A fault is a replacement of text that stands exactly once in one file; the
// compiler sees the result through "go test -overlay", so the tree stays as it
// is. The table says which tests fail with each fault. The exit status is 1 if
// fewer than 95 % of the faults are found, and 2 if a fault does not apply or
// compile any more. A test that fails without any fault is left out, by name.
//
// It is not a tool that invents mutations: every fault here is a mistake that
// somebody has made, or would make in good faith.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const wanted = 95 // per cent

func main() {
	only := flag.String("only", "", "run the faults whose name, promise or file matches this pattern")
	jobs := flag.Int("jobs", runtime.NumCPU(), "how many faults to run at once")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err == nil && *jobs < 1 {
		err = fmt.Errorf("jobs is %d, want 1 or more", *jobs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	chosen := slices.DeleteFunc(faults(), func(f fault) bool {
		return !pattern.MatchString(f.promise + " " + f.name + " " + f.file)
	})
	os.Exit(run(chosen, *jobs))
}

// run tries the faults and prints the table as it grows.
func run(chosen []fault, jobs int) (status int) {
	began := time.Now()
	root, err := moduleRoot()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		return 2
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		return 2
	}
	defer func() { _ = os.RemoveAll(dir) }()
	skip, err := baseline(root, chosen)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		return 2
	}
	results := make([]chan verdict, len(chosen))
	for i := range results {
		results[i] = make(chan verdict, 1)
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range jobs {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(chosen)); i = next.Add(1) - 1 {
				results[i] <- try(root, filepath.Join(dir, fmt.Sprint(i)), skip[chosen[i].pkg()], &chosen[i])
			}
		})
	}
	status = report(chosen, results)
	group.Wait()
	fmt.Printf("%v on %d processors\n", time.Since(began).Round(time.Second), runtime.NumCPU())
	return status
}

// report prints a line for each fault and the share of those that died.
func report(chosen []fault, results []chan verdict) (status int) {
	died, broken := 0, 0
	for i := range chosen {
		v := <-results[i]
		fmt.Printf("%-4s %-66s %-20s %s\n", chosen[i].promise, chosen[i].name, filepath.Base(chosen[i].file), v.text())
		switch {
		case v.err != nil:
			broken++
		case len(v.killers) > 0:
			died++
		}
	}
	share := 100 * float64(died) / float64(max(len(chosen), 1))
	fmt.Printf("%d of %d faults die: %.1f %%, want %d %%\n", died, len(chosen), share, wanted)
	switch {
	case broken > 0:
		fmt.Printf("%d faults do not apply or compile\n", broken)
		return 2
	case share < wanted:
		return 1
	}
	return 0
}

// baseline runs what the faults will run, without a fault. What fails then says
// nothing about any fault: it is left out, and named.
func baseline(root string, chosen []fault) (skip map[string]string, err error) {
	skip = map[string]string{}
	patterns := map[string][]string{}
	for _, f := range chosen {
		patterns[f.pkg()] = append(patterns[f.pkg()], f.tests)
	}
	for pkg, all := range patterns {
		tests := ""
		if !slices.Contains(all, "") {
			slices.Sort(all)
			tests = strings.Join(slices.Compact(all), "|")
		}
		v := twice(root, pkg, tests, "", "")
		if v.err != nil {
			return nil, fmt.Errorf("./%s without a fault: %w", pkg, v.err)
		}
		if len(v.killers) > 0 {
			fmt.Printf("left out, as they fail without a fault: ./%s %s\n", pkg, strings.Join(v.killers, " "))
			skip[pkg] = only(v.killers)
		}
	}
	return skip, nil
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
