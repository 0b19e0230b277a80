//go:build unix

// Mutants plants known faults in copies of the library, one at a time, and runs the tests that
// should fail with them: a test that cannot fail proves nothing.
//
//	go run ./mutants                    all faults
//	go run ./mutants -only 'W1|redis'   faults whose title or file matches
//	go run ./mutants -check             only: does each fault apply and compile?
//
// A file in faults lists faults: a title with a promise of the root package ("-" for none), the
// arguments of go test, and the lines to replace in a file, with those around them where the
// lines alone are not unique.
//
//	= W1 charge: one unit more than the burst
//	-run W1|U2 ./internal/decide ./algo
//	internal/decide/gcra.go
//	-	room := p.burst
//	+	room := p.burst + 1
//
// Every fault is a plausible mistake; none is generated. The exit status is 1 if fewer than 95 %
// of the faults are killed; a fault that no longer applies is not.
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
	"syscall"
)

type fault struct {
	title, args string
	edits       []edit
}

type edit struct{ file, old, new string }

func main() {
	only := flag.String("only", "", "try the faults whose title or file matches this pattern")
	check := flag.Bool("check", false, "only apply and compile the faults")
	flag.Parse()
	faults := read(regexp.MustCompile(*only))
	next, counts := make(chan fault), map[string]int{}
	var workers sync.WaitGroup
	var mu sync.Mutex // guards the output and the counts
	for range runtime.NumCPU() {
		workers.Go(func() {
			tree := must(os.MkdirTemp("", "mutants"))
			defer func() { _ = os.RemoveAll(tree) }()
			must(run("..", "sh", "-c", `git ls-files -co --exclude-standard | tar cf - -T - | tar xf - -C "$0"`, tree))
			for f := range next {
				verdict, by := try(tree, f, *check)
				mu.Lock()
				fmt.Printf("%-72s %s %s\n", f.title, verdict, by)
				counts[verdict]++
				mu.Unlock()
			}
		})
	}
	for _, f := range faults {
		next <- f
	}
	close(next)
	workers.Wait()
	fmt.Printf("%d faults: %v\n", len(faults), counts)
	if 100*(counts["killed"]+counts["applies"]) < 95*len(faults) {
		os.Exit(1)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err, v)
		os.Exit(2)
	}
	return v
}

// read reads the faults that match.
func read(only *regexp.Regexp) (faults []fault) {
	for _, name := range must(filepath.Glob("mutants/faults/*.txt")) {
		for text := range strings.SplitSeq("\n"+string(must(os.ReadFile(name))), "\n= ") {
			var f fault
			f.title, text, _ = strings.Cut(text, "\n")
			f.args, text, _ = strings.Cut(text, "\n")
			for line := range strings.Lines(text + "\n") {
				last := len(f.edits) - 1
				switch line[0] {
				case '\n':
				case '-':
					f.edits[last].old += line[1:]
				case '+':
					f.edits[last].new += line[1:]
				case ' ':
					f.edits[last].old, f.edits[last].new = f.edits[last].old+line[1:], f.edits[last].new+line[1:]
				default:
					f.edits = append(f.edits, edit{file: line[:len(line)-1]})
				}
			}
			if f.edits != nil && only.MatchString(f.edits[0].file+" "+f.title) {
				faults = append(faults, f)
			}
		}
	}
	return faults
}

// try plants a fault in a tree and runs its tests. They must fail twice with it, since a busy
// machine makes a test late once, and pass without it.
func try(tree string, f fault, check bool) (verdict, by string) {
	was := map[string]string{}
	restore := func() {
		for name, text := range was {
			must(0, os.WriteFile(name, []byte(text), 0o644))
		}
	}
	defer restore()
	for _, e := range f.edits {
		name := filepath.Join(tree, e.file)
		text, err := os.ReadFile(name)
		if err != nil || strings.Count("\n"+string(text), "\n"+e.old) != 1 {
			return "DOES NOT APPLY", e.file
		}
		if _, again := was[name]; !again {
			was[name] = string(text)
		}
		planted := strings.Replace("\n"+string(text), "\n"+e.old, "\n"+e.new, 1)
		must(0, os.WriteFile(name, []byte(planted[1:]), 0o644))
	}
	if out, err := test(tree, f.args+" -run ^$", false); err != nil {
		return "DOES NOT COMPILE", out
	}
	if check {
		return "applies", ""
	}
	out, err := test(tree, f.args, false)
	if err == nil {
		out, err = test(tree, f.args, true)
	}
	if err == nil {
		return "SURVIVED", ""
	}
	args, by := f.args, "a crash"
	if names := failed.FindAllString(out, -1); names != nil {
		by = strings.ReplaceAll(strings.Join(names, "|"), "--- FAIL: ", "")
		args += " -run ^(" + by + ")$"
	}
	if _, err := test(tree, args, true); err == nil {
		return "SURVIVED", "failed once: " + by
	}
	restore()
	if _, err := test(tree, args, true); err != nil {
		return "FAILS WITHOUT IT", by
	}
	return "killed", "by " + by
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: \w+`)

// test runs go test with few cases, one package after another.
func test(tree, args string, slow bool) (string, error) {
	flags := []string{"test", "-vet=off", "-short", "-count=1", "-failfast", "-timeout=300s"}
	var packages []string
	for _, arg := range strings.Fields(args) {
		if strings.HasPrefix(arg, "./") {
			packages = append(packages, arg)
		} else {
			flags = append(flags, arg)
		}
	}
	for _, pkg := range packages {
		of := slices.Concat(flags, []string{pkg})
		if _, err := run(tree, "grep", "-qr", "--include=*_test.go", `"pgregory.net/rapid"`, pkg); err == nil {
			of = append(of, "-rapid.shrinktime=0s", "-rapid.nofailfile")
		}
		if out, err := run(tree, "env", append([]string{"SLUICE_SLOW=" + map[bool]string{true: "1"}[slow], "go"}, of...)...); err != nil {
			return out, err
		}
	}
	return "", nil
}

// run runs a command in a process group of its own, which it ends: a test binary that crashes
// leaves its servers behind.
func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return strings.TrimSpace(string(out)), err
}
