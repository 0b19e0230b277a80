//go:build unix

// Mutants plants known faults in the library, one at a time, and runs the tests
// that should fail with them: a test that cannot fail proves nothing.
//
//	go run ./mutants                    all faults, in copies of the tree
//	go run ./mutants -only 'W1|redis'   faults whose file or first line matches
//	go run ./mutants -check             only: does each fault apply and compile?
//
// A fault is a patch in faults. Its first line is a promise of the root package
// ("-" for none) and a description, its second line the tests that should fail:
//
//	W1 charge: one unit more than the burst
//	go test -run W1|U2 ./internal/decide ./algo
//	--- a/internal/decide/gcra.go
//
// Every fault is a plausible mistake; none is generated. The exit status is 1 if
// fewer than 95 % of the faults are killed, and 2 if a fault is broken: it does
// not apply or compile any more, or its tests fail without it.
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
	"strconv"
	"strings"
	"sync"
	"syscall"
)

var (
	failedTest = regexp.MustCompile(`(?m)^--- FAIL: \w+`)
	passedTest = regexp.MustCompile(`(?m)^--- PASS: (\w+) \(([0-9.]+)s\)`)
)

const wanted = 95 // percent

// fault is a patch with its two header lines.
type fault struct{ patch, title, command string }

func main() {
	only := flag.String("only", "", "try the faults whose file or first line matches this pattern")
	check := flag.Bool("check", false, "only apply and compile the faults")
	flag.Parse()
	root, err := filepath.Abs("..")
	must(err)
	faults := read(root, regexp.MustCompile(*only))
	killed, broken := tryAll(root, faults, *check)
	if *check {
		fmt.Printf("%d faults apply, %d broken\n", len(faults)-broken, broken)
	} else {
		fmt.Printf("%d faults: %d killed, %d survived, %d broken\n", len(faults), killed, len(faults)-killed-broken, broken)
	}
	switch {
	case broken > 0:
		os.Exit(2)
	case !*check && 100*killed < wanted*len(faults):
		os.Exit(1)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
}

// read reads the faults whose file or first line matches.
func read(root string, only *regexp.Regexp) (faults []fault) {
	files, err := filepath.Glob(filepath.Join(root, "bench/mutants/faults/*.patch"))
	must(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(err)
		title, rest, _ := strings.Cut(string(text), "\n")
		command, _, _ := strings.Cut(rest, "\n")
		if only.MatchString(filepath.Base(file) + " " + title) {
			faults = append(faults, fault{file, title, command})
		}
	}
	return faults
}

// tryAll tries the faults, each processor in its own copy of the tree, and
// prints a line for each.
func tryAll(root string, faults []fault, check bool) (killed, broken int) {
	var workers sync.WaitGroup
	var mu sync.Mutex  // guards the output and the counts
	var clean sync.Map // command -> func() baseline
	next := make(chan fault)
	for range runtime.NumCPU() {
		workers.Go(func() {
			tree, err := os.MkdirTemp("", "mutants")
			must(err)
			defer func() { _ = os.RemoveAll(tree) }()
			_, err = run(root, "sh", "-c", `git ls-files -co --exclude-standard | tar cf - -T - | tar xf - -C "$0"`, tree)
			must(err)
			for f := range next {
				before, _ := clean.LoadOrStore(f.command, sync.OnceValue(func() baseline { return measure(tree, f.command) }))
				line := try(tree, f, check, before.(func() baseline))
				mu.Lock()
				fmt.Printf("%-72s %s\n", f.title, line)
				killed, broken = killed+strings.Count(line, "killed by"), broken+strings.Count(line, "BROKEN")
				mu.Unlock()
			}
		})
	}
	for _, f := range faults {
		next <- f
	}
	close(next)
	workers.Wait()
	return killed, broken
}

// baseline is a command without a fault: the tests that fail, and those that take
// seconds, as a pattern.
type baseline struct{ failed, slow string }

func measure(tree, command string) baseline {
	failed, out := test(tree, command+" -v")
	var slow []string
	for _, m := range passedTest.FindAllStringSubmatch(out, -1) {
		if seconds, err := strconv.ParseFloat(m[2], 64); err == nil && seconds >= 2 {
			slow = append(slow, m[1])
		}
	}
	return baseline{failed, pattern(slow)}
}

func pattern(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

// try plants a fault in a tree, compiles and runs its tests, the slow ones last, and
// removes it.
func try(tree string, f fault, check bool, before func() baseline) string {
	var without baseline
	if !check {
		if without = before(); without.failed != "" {
			return "BROKEN: without the fault: " + without.failed
		}
	}
	if out, err := run(tree, "git", "apply", f.patch); err != nil {
		return "BROKEN: " + out
	}
	defer func() {
		_, err := run(tree, "git", "apply", "-R", f.patch)
		must(err)
	}()
	if out, err := run(tree, "go", append([]string{"test", "-c", "-o", os.DevNull}, packages(f.command)...)...); err != nil {
		return "BROKEN: " + out
	}
	if check {
		return "applies"
	}
	failed, _ := test(tree, f.command+" -skip "+without.slow)
	if failed == "" || failed == noTest {
		failed, _ = test(tree, f.command)
	}
	if failed == "" {
		return "SURVIVED"
	}
	if still, _ := test(tree, again(f.command, failed)); still == "" { // a busy machine makes a test late once
		return "SURVIVED"
	}
	return "killed by " + failed
}

// again is a command that runs only the tests that failed, or all of it after a
// crash.
func again(command, failed string) string {
	if strings.Contains(failed, " in ") { // a crash
		return command
	}
	return "go test -run " + pattern(strings.Split(failed, ", ")) + " " + strings.Join(packages(command), " ")
}

// packages are the packages of a command.
func packages(command string) (dirs []string) {
	for _, arg := range strings.Fields(command) {
		if strings.HasPrefix(arg, "./") {
			dirs = append(dirs, arg)
		}
	}
	return dirs
}

// noTest is the failure of a command that runs no test.
const noTest = "no test ran"

// test runs a command with few cases, one package at a time, and returns the
// names of the failed tests, and the output of the tests.
func test(tree, command string) (failed, out string) {
	flags := []string{"test", "-vet=off", "-short", "-count=1", "-failfast", "-timeout=300s"}
	for _, arg := range strings.Fields(command)[2:] {
		if !strings.HasPrefix(arg, "./") {
			flags = append(flags, arg)
		}
	}
	ran := false
	for _, pkg := range packages(command) {
		args := slices.Concat(flags, []string{pkg})
		if _, err := run(tree, "grep", "-q", "--include=*_test.go", "-r", `"pgregory.net/rapid"`, pkg); err == nil {
			args = append(args, "-rapid.shrinktime=0s", "-rapid.nofailfile")
		}
		text, err := run(tree, "go", args...)
		out += text + "\n"
		if err != nil {
			if names := failedTest.FindAllString(text, -1); len(names) > 0 {
				return strings.ReplaceAll(strings.Join(names, ", "), "--- FAIL: ", ""), out
			}
			return "a crash in " + pkg, out
		}
		ran = ran || !strings.Contains(text, "[no tests to run]")
	}
	if !ran {
		return noTest, out
	}
	return "", out
}

// run runs a command in a process group of its own, which it ends: a test
// binary that crashes leaves its servers behind.
func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(cmd.Environ(), "SLUICE_SLOW=1") // the tests that make test leaves out, too
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return strings.TrimSpace(string(out)), err
}
