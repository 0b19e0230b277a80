// Package versions runs two versions of the module side by side on one Redis, as in a
// rolling deployment: TestSideBySide builds the program in client in both trees and asks the
// two processes in turns.
package versions

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

var old = flag.String("old", "", "the commit or tag of the other version; without it, both processes are of this tree")

var formats = flag.String("formats", "", "whose values the old version writes otherwise, with commas: sliding-log, in-flight, credits")

// process is a client of one version.
type process struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

// start starts the client of the tree at dir.
func start(t *testing.T, dir, redis string) *process {
	t.Helper()
	cmd := exec.Command(build(t, dir), redis)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &process{t, in, bufio.NewScanner(out)}
}

// build compiles the client inside the tree at dir, whose module it belongs to then.
func build(t *testing.T, dir string) string {
	t.Helper()
	source, err := os.ReadFile("client/main.go")
	require.NoError(t, err)
	inside := filepath.Join(dir, "internal", "versionsclient")
	require.NoError(t, os.MkdirAll(inside, 0o755))
	if _, err := os.Stat(filepath.Join(dir, "algo", "prepaid")); err != nil {
		source = []byte(before.Replace(string(source)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(inside, "main.go"), source, 0o644))
	binary := filepath.Join(t.TempDir(), "client")
	run(t, dir, "go", "build", "-trimpath", "-o", binary, "./internal/versionsclient")
	return binary
}

// before makes the client one of versions without package prepaid.
var before = strings.NewReplacer(
	"\t\"github.com/sluice-go/sluice/algo/prepaid\"\n", "",
	"c.all[name] = prepaid.First(plan, c.credits[name])\n\treturn \"ok\", nil",
	"l, err := distributed.First(plan, c.credits[name])\n\tc.all[name] = l\n\treturn \"ok\", err",
)

// tree returns a directory with the files of a commit; of the working tree without one.
func tree(t *testing.T, commit string) string {
	t.Helper()
	root, dir := strings.TrimSpace(run(t, ".", "git", "rev-parse", "--show-toplevel")), t.TempDir()
	files := "git ls-files -z --cached --others --exclude-standard -- '*.go' '*.lua' go.mod go.sum | xargs -0 tar cf -"
	if commit != "" {
		files = "git archive '" + commit + "'"
	}
	run(t, root, "sh", "-c", files+" | tar xf - -C '"+dir+"'")
	return dir
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoErrorf(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

func (p *process) begin(format string, args ...any) {
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	require.NoError(p.t, err)
}

func (p *process) end() string {
	p.t.Helper()
	require.True(p.t, p.out.Scan(), "the client ended")
	answer := p.out.Text()
	require.NotContains(p.t, answer, "error")
	return answer
}

func (p *process) do(format string, args ...any) string {
	p.t.Helper()
	p.begin(format, args...)
	return p.end()
}

// acquire returns the lease, "" after a denial.
func (p *process) acquire(name string, n int) string {
	p.t.Helper()
	_, lease, _ := strings.Cut(p.do("acquire %s key %d", name, n), " ")
	return lease
}

func number(t *testing.T, s string) (n int) {
	_, err := fmt.Sscan(s, &n)
	require.NoError(t, err)
	return n
}

// limits of ten units that do not come back while the test runs.
var limits = []string{
	"token-bucket 10/day burst 10",
	"leaky-bucket 10/day burst 10",
	"pacer 10/day slack 9 wait 1s",
	"fixed-window 10/720h",
	"fixed-window 10/month zone Europe/Berlin",
	"sliding-window 10/720h",
	"sliding-log 10/day",
}

func TestSideBySide(t *testing.T) {
	server := redistest.Start(t)
	a, b := start(t, tree(t, *old), server.Addr()), start(t, tree(t, ""), server.Addr())
	for i, both := range [][2]*process{{a, b}, {b, a}} {
		one, other := both[0], both[1]
		for n, text := range limits {
			name := fmt.Sprint("limit", n)
			for _, p := range both {
				p.do("limit %s %s", name, text)
			}
			if kind, _, _ := strings.Cut(text, " "); otherFormat(kind) {
				apart(t, name, fmt.Sprint("alien", i), 10, 20, one, other)
				continue
			}
			oneLimit(t, name, one, other)
			one.do("reset %s key", name) // for the other order
		}
		for _, p := range both {
			p.do("inflight slots 10")
		}
		if otherFormat("in-flight") {
			apart(t, "slots", fmt.Sprint("alien", i), 10, 20, one, other)
		} else {
			inFlight(t, one, other)
		}
		reservations(t, fmt.Sprint("id", i), one, other)
		one.do("reset limit0 key")
	}
	shares(t, a, b)
	prepaid(t, a, b)
	ruled(t, a, b)
	floods(t, a, b)
	if *formats != "" {
		return // which are key faults
	}
	for _, p := range []*process{a, b} {
		require.Equal(t, "0", p.do("faults"), "key faults and mixed parameters")
	}
}

func otherFormat(kind string) bool { return slices.Contains(strings.Split(*formats, ","), kind) }

// apart: each version leaves values alone that the other wrote. Then Redis decides for one, the
// other has its share, and both admit at most twice the limit.
func apart(t *testing.T, name, key string, least, most int, one, other *process) {
	admitted := 0
	for range 15 {
		for _, p := range []*process{one, other} {
			admitted += number(t, p.do("count %s %s 2", name, key))
		}
	}
	require.GreaterOrEqual(t, admitted, least, name)
	require.LessOrEqual(t, admitted, most, name)
	t.Logf("%s: %d admitted of at most %d", name, admitted, most)
}

// ruled: what the old version has put is in force in the new one, which begins later; and what
// the new one puts is in force in the old one after its interval.
func ruled(t *testing.T, old, latest *process) {
	old.do("rules set")
	old.do("put early 5/day burst 5")
	latest.do("rules set")
	require.Equal(t, old.do("rule early"), latest.do("rule early"))
	for _, limit := range []string{"6/day burst 6", "7/day burst 7"} {
		latest.do("put early %s", limit)
		want := latest.do("rule early")
		require.Contains(t, want, limit[:5])
		require.Eventually(t, func() bool { return old.do("rule early") == want }, 30*time.Second, 100*time.Millisecond)
	}
}

// oneLimit: both spend one limit of ten; each gives back its own charges to both; resets and
// bans concern both.
func oneLimit(t *testing.T, name string, one, other *process) {
	var last string
	for range 5 {
		last = one.acquire(name, 1)
		require.NotEmpty(t, last, name)
		require.NotEmpty(t, other.acquire(name, 1), name)
	}
	require.Empty(t, one.acquire(name, 1), name)
	require.Empty(t, other.acquire(name, 1), name)

	one.do("release %s", last)
	one.do("acquire %s key 0", name) // after the refund, which no call waits for
	require.NotEmpty(t, other.acquire(name, 1), name)
	require.Empty(t, other.acquire(name, 1), name)

	other.do("reset %s key", name)
	last = one.acquire(name, 4)
	require.NotEmpty(t, last, name)
	one.do("settle %s 9", last)
	one.do("acquire %s key 0", name)
	require.Empty(t, other.acquire(name, 2), name)
	require.NotEmpty(t, other.acquire(name, 1), name)

	other.do("ban %s key", name)
	one.do("reset %s key", name)
	one.do("ban %s key", name)
	require.Empty(t, other.acquire(name, 1), name)
}

// inFlight: both share ten slots, and a slot that one frees is the other's.
func inFlight(t *testing.T, one, other *process) {
	held := []string{one.acquire("slots", 5), one.acquire("slots", 1), other.acquire("slots", 4)}
	require.NotContains(t, held, "")
	require.Empty(t, other.acquire("slots", 1))
	one.do("release %s", held[1])
	one.do("acquire slots key 0")
	require.NotEmpty(t, other.acquire("slots", 1))
	require.Empty(t, one.acquire("slots", 1))
	one.do("reset slots key")
}

// reservations: one settles the reservations of the other.
func reservations(t *testing.T, id string, one, other *process) {
	one.do("reset limit0 key")
	require.Equal(t, "true", one.do("reserve limit0 key %s 5", id))
	require.Equal(t, "true", other.do("reserve limit0 key %s 5", id), "the same again")
	other.do("settlereserved limit0 key %s 2", id)
	require.Empty(t, one.acquire("limit0", 9))
	require.NotEmpty(t, one.acquire("limit0", 8))
	require.Empty(t, other.acquire("limit0", 1))
}

// shares: ten for both children, of which a second of its rate is kept for a.
func shares(t *testing.T, a, b *process) {
	admitted := 0
	for _, p := range []*process{a, b} {
		p.do("shares team")
	}
	for range 12 {
		for i, p := range []*process{a, b} {
			if p.acquire([]string{"team/a", "team/b"}[i], 1) != "" {
				admitted++
			}
		}
	}
	require.Equal(t, 10, admitted)
}

// prepaid: three of the plan, and four that one has bought.
func prepaid(t *testing.T, a, b *process) {
	for _, p := range []*process{a, b} {
		p.do("first paid")
	}
	if otherFormat("credits") {
		b.do("topup paid key id 4")
		apart(t, "paid", "key", 3+4, 2*3+4, a, b) // what was bought is served once
		return
	}
	a.do("topup paid key id 4")
	b.do("topup paid key id 4") // the same again
	require.NotEmpty(t, a.acquire("paid", 2))
	require.NotEmpty(t, b.acquire("paid", 4))
	require.Empty(t, a.acquire("paid", 2))
	require.NotEmpty(t, a.acquire("paid", 1))
	require.Empty(t, b.acquire("paid", 1))
}

// floods: both at once, as fast as they can, get exactly the units of the limit, and
// count each other.
func floods(t *testing.T, a, b *process) {
	const rate, burst, length = 500, 50, 2000
	for _, p := range []*process{a, b} {
		p.do("limit flood %d/s burst %d", rate, burst)
	}
	began := time.Now()
	a.begin("flood flood key %d", length)
	b.begin("flood flood key %d", length)
	admitted := number(t, a.end()) + number(t, b.end())
	most := burst + rate*time.Since(began).Seconds()
	require.LessOrEqual(t, float64(admitted), most)
	require.GreaterOrEqual(t, float64(admitted), .9*(burst+rate*length/1000))
	for _, p := range []*process{a, b} {
		require.Eventually(t, func() bool { return p.do("instances") == "2" }, 10*time.Second, 100*time.Millisecond)
	}
	t.Logf("both admitted %d of at most %.0f", admitted, most)
}
