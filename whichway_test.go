package sluice_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

const (
	whichWay = "docs/which-way.md"
	llms     = "llms.txt"
)

// tasks are the headings of the page of tasks.
var tasks = []string{
	"Per address", "Per user", "Plans", "One user more", "Tokens and money", "WebSockets and server-sent events",
	"Bytes per second", "Login", "A partner's API that allows 50 a second", "A pool behind the service", "Overload",
	"Several limits at once",
}

// TestWhichWay: each task has one way, in at most 12 lines, over HTTP and gRPC, here and on
// Redis.
func TestWhichWay(t *testing.T) {
	sections := strings.Split(read(t, whichWay), "\n## ")[1:]
	require.Len(t, sections, len(tasks)+1, "and the table")
	for i, task := range tasks {
		title, text, _ := strings.Cut(sections[i], "\n")
		require.Equal(t, task, title)
		require.Contains(t, text, "Redis", title)
		code := ""
		for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1) {
			require.LessOrEqual(t, strings.Count(m[1], "\n"), 12, "%s: %s", title, m[1])
			code += m[1]
		}
		require.Regexp(t, "http(mw)?[.]", code, title)
		require.Regexp(t, "grpc(mw|client)?[.]", code, title)
	}
}

// TestPagesForPrograms: the two pages are short, and llms.txt has the tasks, and signatures of
// the source.
func TestPagesForPrograms(t *testing.T) {
	text := read(t, llms)
	for _, word := range []string{"classic", "strategy", "signal", "marker", "shares", "telemetry", "Explain", "BBR", "warm-up"} {
		require.Contains(t, text, word, "what the README promises is found from here")
		require.Contains(t, read(t, whichWay), word, "what the README promises is found from here")
	}
	require.LessOrEqual(t, len(strings.Fields(text+read(t, "AGENTS.md"))), 3000)
	for _, task := range tasks {
		require.Contains(t, text, "\n### "+task+"\n")
	}

	_, signatures, _ := strings.Cut(text, "```text\n")
	signatures, _, _ = strings.Cut(signatures, "\n```")
	for _, block := range strings.Split(signatures, "\n\n") {
		pkg, lines, _ := strings.Cut(block, "\n")
		sources, err := filepath.Glob(strings.TrimPrefix(pkg, "package ") + "/*.go")
		require.NoError(t, err)
		declared := map[string]bool{}
		for _, source := range sources {
			for line := range strings.Lines(read(t, source)) {
				declaration, _, _ := strings.Cut(strings.TrimSpace(line), " {")
				declared[declaration] = true
			}
		}
		for line := range strings.SplitSeq(lines, "\n") {
			require.True(t, declared[line], "%s: %s", pkg, line)
		}
	}
}

// TestOnRedis: the page's table of what exists on Redis is that of the code.
func TestOnRedis(t *testing.T) {
	var b strings.Builder
	b.WriteString("| in one process | on Redis |\n|---|---|\n")
	row := func(here, there string) { fmt.Fprintf(&b, "| %s | %s |\n", here, there) }
	for _, name := range cases.Algorithms() {
		method, spec := camel(name), algo.Spec{Algorithm: name, Rate: algo.PerSecond(5)}
		if name == "smooth-warming-up" {
			spec.Warmup = 1e9
		}
		here, there := "`algo.New"+method+"`", "no"
		if !declares(t, "algo", "func New"+method+"(") {
			require.True(t, declares(t, "algo-classic", "func New"+method+"("), name)
			here = "`classic.New" + method + "`"
		}
		if distributed.Validate(spec) == nil {
			there = "`store.Limiter`"
			if has[*distributed.Store](method) {
				there = "`store." + method + "`"
			}
		}
		row(here, there)
	}
	for _, r := range [][3]string{ // a constructor, the record that has it, and its counterpart: a method of Store, or a record
		{"adaptive.Fixed", "adaptive", "InFlight"}, {"adaptive.PerKey", "adaptive", "InFlight"},
		{"shares.New", "algo-shares", "Shares"}, {"learn.New", "algo-learn", "Learned"},
		{"guard.NewBan", "algo-guard", "distributed.NewBan"}, {"prepaid.NewCredits", "algo-prepaid", "Credits"}, {"reload.Open", "algo-reload", "distributed-rules.New"},
		{"adaptive.Default", "adaptive", ""}, {"throttle.New", "adaptive-throttle", ""}, {"marker.NewSRTCM", "algo-marker", ""},
	} {
		_, name, _ := strings.Cut(r[0], ".")
		require.True(t, declares(t, r[1], "func "+name+"("), r[0])
		there := "no"
		switch pkg, name, other := strings.Cut(r[2], "."); {
		case other:
			require.True(t, declares(t, pkg, "func "+name+"("), r[2])
			there = "`" + strings.TrimPrefix(r[2], "distributed-") + "`"
		case r[2] != "":
			require.True(t, has[*distributed.Store](r[2]), r[2])
			there = "`store." + r[2] + "`"
		}
		row("`"+r[0]+"`", there)
	}
	var only []string
	for _, m := range methods[*algo.RateLimiter]() {
		if !has[*distributed.Limiter](m) {
			only = append(only, "`"+m+"`")
		}
	}
	row("methods of a limiter", "all but "+strings.Join(only, ", ")+", and with a context")
	row("`ByKey`, `All`, `Shadow`, `NewSwitch`, `Wait`, `FailuresOnly`, `First`, meters", "the same, around limits on Redis")

	_, table, _ := strings.Cut(read(t, whichWay), "\n## On Redis\n")
	require.Contains(t, table, b.String(), "the table is not that of the code:\n%s", b.String())
}

// camel is a name as Go writes it.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// declares reports whether a record of the public API has a declaration that begins so.
func declares(t *testing.T, record, begin string) bool {
	return strings.Contains("\n"+read(t, "internal/workshop/apirecord/public/"+record+".txt"), "\n"+begin)
}

func methods[T any]() (names []string) {
	for m := range reflect.TypeFor[T]().Methods() {
		names = append(names, m.Name)
	}
	return names
}

func has[T any](method string) bool { return slices.Contains(methods[T](), method) }
