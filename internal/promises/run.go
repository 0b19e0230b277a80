package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// runTests runs the tests of packages one after the other: two packages at once
// would disturb the timing of those that talk to Redis.
func runTests(l *ledger, tests string, full bool, packages []string) error {
	args := []string{"test", "-json", "-p=1", "-count=1", "-shuffle=on", "-timeout=120m", "-run", tests}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Stderr = os.Stderr
	if full {
		cmd.Env = append(os.Environ(), "SLUICE_LONG=1")
	}
	return start(cmd, func(out io.Reader) error { return l.read(out) })
}

// start runs cmd and hands its output to read. That tests fail is no error
// here: the ledger knows.
func start(cmd *exec.Cmd, read func(io.Reader) error) error {
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	err = read(out)
	ended := cmd.Wait()
	var exit *exec.ExitError
	if errors.As(ended, &exit) {
		ended = nil
	}
	return errors.Join(err, ended)
}

// event is a line of "go test -json".
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// read follows the events of "go test -json".
func (l *ledger) read(out io.Reader) error {
	figures := map[string][]string{} // of the running tests, by top-level name
	said := map[string]*strings.Builder{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%q is no event: %w", lines.Text(), err)
		}
		top, _, sub := strings.Cut(e.Test, "/")
		name := e.Package + " " + top
		switch e.Action {
		case "output", "build-output":
			if said[name] == nil {
				said[name] = new(strings.Builder)
			}
			said[name].WriteString(e.Output)
			if m := figureOf.FindStringSubmatch(e.Output); m != nil {
				figures[name] = append(figures[name], m[1]+": "+strings.TrimSpace(m[2]))
			}
		case "pass", "fail", "skip", "build-fail":
			if sub {
				continue
			}
			if ok := e.Action == "pass"; top != "" {
				if ok && l.fuzzed && strings.HasPrefix(top, "Fuzz") {
					continue
				}
				l.note(top, result{ok, time.Duration(e.Elapsed * float64(time.Second)), figures[name]})
				if !ok {
					l.say("%s", said[name])
				}
			} else if e.Action != "pass" && e.Action != "skip" {
				l.failed = true
				l.say("%s", text(said[name]))
			}
			delete(said, name)
		}
	}
	return lines.Err()
}

func text(b *strings.Builder) string {
	if b == nil {
		return ""
	}
	return b.String()
}

var execsOf = regexp.MustCompile(`execs: (\d+)`)

// runFuzz runs each fuzz target of packages that the pattern tests matches.
func runFuzz(l *ledger, tests string, long time.Duration, packages []string) error {
	chosen, err := regexp.Compile(tests)
	if err != nil {
		return err
	}
	list, err := exec.Command("go", append([]string{"test", "-json", "-list", "^Fuzz"}, packages...)...).Output()
	if err != nil {
		return fmt.Errorf("go test -list: %w", err)
	}
	for line := range strings.Lines(string(list)) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return err
		}
		target := strings.TrimSpace(e.Output)
		if strings.HasPrefix(target, "Fuzz") && chosen.MatchString(target) {
			l.fuzz(e.Package, target, long)
		}
	}
	return nil
}

// fuzz runs one target; what it finds stands in its output.
func (l *ledger) fuzz(pkg, target string, long time.Duration) {
	began := time.Now()
	out, err := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", long.String(), pkg).CombinedOutput()
	if err != nil {
		l.say("%s\n", out)
	}
	r := result{ok: err == nil, took: time.Since(began)}
	if all := execsOf.FindAllStringSubmatch(string(out), -1); len(all) > 0 {
		figure := fmt.Sprintf("%s %s inputs", target, all[len(all)-1][1])
		for _, p := range l.table {
			r.figures = append(r.figures, p.id+": "+figure)
		}
	}
	l.note(target, r)
}
