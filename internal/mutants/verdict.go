package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// verdict is what became of a fault.
type verdict struct {
	killers []string // the tests that failed
	err     error    // it could not be tried
}

func (v verdict) text() string {
	const most = 4
	switch {
	case v.err != nil:
		return "BROKEN: " + v.err.Error()
	case len(v.killers) == 0:
		return "SURVIVED"
	case len(v.killers) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(v.killers[:most], ", "), len(v.killers)-most)
	}
	return strings.Join(v.killers, ", ")
}

// try plants a fault and runs the tests.
func try(root, dir, skip string, f *fault) verdict {
	overlay, err := f.plant(root, dir)
	if err != nil {
		return verdict{err: err}
	}
	return twice(root, f.pkg(), f.tests, skip, overlay)
}

// twice runs tests, and those that fail once more by themselves: a busy machine
// makes tests late, and that must not count.
func twice(root, pkg, tests, skip, overlay string) verdict {
	v := test(root, pkg, tests, skip, overlay)
	if len(v.killers) > 0 {
		v = test(root, pkg, only(v.killers), skip, overlay)
	}
	return v
}

// only is the pattern that matches these tests.
func only(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// test runs the tests of a package with few cases, without those that skip
// matches, and with an overlay unless that is "".
func test(root, pkg, tests, skip, overlay string) verdict {
	args := []string{"test", "-json", "-vet=off", "-short", "-count=1", "-timeout=120s", "-run", tests}
	if skip != "" {
		args = append(args, "-skip", skip)
	}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	args = append(args, "./"+pkg)
	if usesRapid(filepath.Join(root, pkg)) {
		// A failure need not be made small, nor kept beside the tests.
		args = append(args, "-rapid.shrinktime=0s", "-rapid.nofailfile")
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	defer inGroup(cmd)()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return verdict{err: err}
	}
	v := judge(bytes.NewReader(out))
	if err != nil && v.err == nil && len(v.killers) == 0 {
		v.err = fmt.Errorf("go test: %w: %s", err, lastLine(exit.Stderr))
	}
	return v
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// usesRapid reports whether the tests of a package know the flags of rapid.
func usesRapid(dir string) bool {
	names, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	return slices.ContainsFunc(names, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && bytes.Contains(text, []byte(`"pgregory.net/rapid"`))
	})
}

// event is a line of "go test -json".
type event struct{ Action, Test, Output string }

// errNothingRan: a pattern that matches no test would let any fault survive.
var errNothingRan = errors.New("no test ran")

// judge reads the output of "go test -json". A test that began and did not end
// before the binary did took it along, by a panic, a deadlock or the timeout;
// if another test has failed by then, that one is to blame.
func judge(out io.Reader) (v verdict) {
	running, began, failed := map[string]bool{}, 0, false
	var said []string
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return verdict{err: fmt.Errorf("go test: %q is no event: %w", lines.Text(), err)}
		}
		top := e.Test != "" && !strings.Contains(e.Test, "/")
		switch {
		case e.Action == "build-output":
			said = append(said, strings.TrimSpace(e.Output))
		case e.Action == "build-fail":
			return verdict{err: fmt.Errorf("it does not compile: %s", strings.Join(said, "; "))}
		case e.Action == "fail" && e.Test == "":
			failed = true
		case top && e.Action == "run":
			running[e.Test] = true
			began++
		case top && (e.Action == "pass" || e.Action == "skip"):
			delete(running, e.Test)
		case top && e.Action == "fail":
			delete(running, e.Test)
			v.killers = append(v.killers, e.Test)
		}
	}
	if err := lines.Err(); err != nil {
		return verdict{err: err}
	}
	if began == 0 && !failed {
		return verdict{err: errNothingRan}
	}
	if failed && len(v.killers) == 0 {
		v.killers = slices.Collect(maps.Keys(running))
	}
	slices.Sort(v.killers)
	return v
}
