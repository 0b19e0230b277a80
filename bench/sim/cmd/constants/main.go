// Constants shows the purpose of the constants of adaptive.RunQueue: it builds itself
// with each of them changed, plays the scenarios of the simulator with Default, and
// prints a table of the results.
//
//	go run ./sim/cmd/constants
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/bench/sim"
)

// changes are the constants, and the values that replace theirs.
var changes = []struct{ name, low, high string }{
	{"waitShare", "0.5", "0.9"},
	{"drainShare", "0.7", "1.0"},
	{"minWide", "10", "40"},
	{"maxWide", "48", "1000"},
	{"minClosed", "3", "12"},
	{"polled", "20.0", "80.0"},
	{"demandOpen", "0.9", "1.1"},
	{"demandClosed", "1.05", "1.3"},
	{"idleBelow", "0.0", "1.0"},
	{"usageMemory", "0.05", "0.8"},
	{"closedTime", "0.125", "2.0"},
	{"queueUpdateEvery", "int64(2 * time.Millisecond)", "int64(50 * time.Millisecond)"},
	{"queueUpdateLatest", "int64(250 * time.Millisecond)", "int64(4 * time.Second)"},
	{"minArrivals", "2", "40"},
	{"costMemory", "1.25", "20.0"},
	{"memoryRequests", "25", "400"},
	{"minMemory", "0.025", "0.4"},
	{"maxMemory", "0.5", "8.0"},
	{"quietRate", "0.0", "1e9"},
	{"outsideHandler", "0.0", "1e-3"},
}

const intro = `Default in %d scenarios of the simulator, one seed each, as it is and with one constant of
RunQueue changed at a time. A scenario is met if it misses none of its targets; worst is the
lowest goodput, over the possible one. Up to four scenarios that are met only without, or only
with, the change are named. quietRate, outsideHandler, queueUpdateLatest and polled are for what the
simulator does not have: TestRunQueueBesideOtherWork, TestRunQueueBehindThePoller.

constant	is	changed to	met	worst	lost	won
`

const file = "../adaptive/next.go"

func main() {
	play := flag.Bool("play", false, "play the scenarios and print the results as JSON")
	flag.Parse()
	if *play {
		algo.Must(0, json.NewEncoder(os.Stdout).Encode(played()))
		return
	}
	compare()
}

// cell is a scenario with its result.
type cell struct {
	ID      string
	Met     bool
	Goodput float64 // over the possible one
}

// played plays the scenarios with this build.
func played() (cells []cell) {
	for _, s := range algo.Must(sim.Cells()) {
		cells = append(cells, cell{s.Scenario.ID, len(s.Misses()) == 0, s.Share()})
	}
	return cells
}

// compare prints the table.
func compare() {
	source := string(algo.Must(os.ReadFile(file)))
	before := changed(source)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer func() { _ = out.Flush() }()
	_, _ = fmt.Fprintf(out, intro, len(before))
	_, _ = fmt.Fprintf(out, "as it is\t\t\t%s\n", count(before))
	for _, c := range changes {
		for _, value := range []string{c.low, c.high} {
			text, is := replace(source, c.name, value)
			after := changed(text)
			_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n", c.name, short(is), short(value), count(after),
				moved(before, after), moved(after, before))
			fmt.Fprintln(os.Stderr, c.name, value)
		}
	}
}

// replace gives a constant of a Go source another value, and returns the one that it had.
func replace(source, name, value string) (text, is string) {
	at := regexp.MustCompile(`(?m)^\t` + name + ` +=(.*?)(//.*)?$`).FindStringSubmatchIndex(source)
	if at == nil {
		panic(file + ": no constant " + name)
	}
	return source[:at[2]] + " " + value + " " + source[at[3]:], strings.TrimSpace(source[at[2]:at[3]])
}

// changed builds this program with another source of RunQueue and runs it.
func changed(source string) (cells []cell) {
	dir := algo.Must(os.MkdirTemp("", "constants"))
	defer func() { _ = os.RemoveAll(dir) }()
	text, overlay := filepath.Join(dir, "next.go"), filepath.Join(dir, "overlay.json")
	files := algo.Must(json.Marshal(map[string]map[string]string{"Replace": {algo.Must(filepath.Abs(file)): text}}))
	algo.Must(0, errors.Join(os.WriteFile(text, []byte(source), 0o600), os.WriteFile(overlay, files, 0o600)))
	play := exec.Command("go", "run", "-overlay", overlay, "./sim/cmd/constants", "-play")
	play.Stderr = os.Stderr
	algo.Must(0, json.Unmarshal(algo.Must(play.Output()), &cells))
	return cells
}

// short is a value without its conversion.
func short(value string) string {
	return strings.NewReplacer("int64(", "", ")", "", "time.", "", " * ", " ").Replace(value)
}

func count(cells []cell) string {
	met, worst := 0, 1.0
	for _, c := range cells {
		if c.Met {
			met++
		}
		worst = min(worst, c.Goodput)
	}
	return fmt.Sprintf("%d\t%.2f", met, worst)
}

// moved are scenarios that are met in one run and missed in another.
func moved(met, missed []cell) string {
	var ids []string
	for i, c := range met {
		if c.Met && !missed[i].Met {
			ids = append(ids, c.ID)
		}
	}
	if n := len(ids); n > 4 {
		ids = append(ids[:4], fmt.Sprintf("and %d more", n-4))
	}
	return strings.Join(ids, ", ")
}
