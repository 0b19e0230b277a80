package sluice_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// files calls visit with every file below dir that a commit may contain.
func files(t *testing.T, dir string, visit func(path string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			visit(path)
		}
		return err
	}))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// compiled are the Go files that pages quote, without indentation.
func compiled(t *testing.T, dirs ...string) (sources []string) {
	for _, dir := range dirs {
		files(t, dir, func(path string) {
			if strings.HasSuffix(path, ".go") && (strings.HasPrefix(path, "examples") || strings.HasSuffix(path, "_test.go")) {
				sources = append(sources, flat(read(t, path)))
			}
		})
	}
	return sources
}

// flat drops the space around each line.
func flat(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

// TestPagesAreCompiled: every block of Go code in the README and in the guides
// is copied unchanged from a compiled file.
func TestPagesAreCompiled(t *testing.T) {
	sources := compiled(t, "examples", "docs", "httpmw/admin")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```")
	pages, err := filepath.Glob("docs/*/*.md")
	require.NoError(t, err)
	found := 0
	for _, page := range append(pages, "README.md", "AGENTS.md", llms, whichWay) {
		for _, block := range blocks.FindAllStringSubmatch(read(t, page), -1) {
			for paragraph := range strings.SplitSeq(flat(block[1]), "\n\n") {
				found++
				require.True(t, quoted(sources, strings.TrimSpace(paragraph)), "%s: no compiled file has\n%s", page, paragraph)
			}
		}
	}
	require.Greater(t, found, 60)
}

// quoted reports whether the lines of paragraph follow one another in a source.
func quoted(sources []string, paragraph string) bool {
	for _, s := range sources {
		if strings.Contains("\n"+s+"\n", "\n"+paragraph+"\n") {
			return true
		}
	}
	return false
}

// TestTablesOfMigrationAreCompiled: the code in the first two columns of each page,
// except other languages, is compiled.
func TestTablesOfMigrationAreCompiled(t *testing.T) {
	notGo := map[string]bool{"docs/migrate/guava.md": true, "docs/migrate/nginx.md": true, "docs/migrate/sentinel-golang.md": true}
	sources := strings.Join(compiled(t, "examples/migrate"), "\n")
	pages, err := filepath.Glob("docs/migrate/*.md")
	require.NoError(t, err)
	code := regexp.MustCompile("`([^`]+)`")
	word := regexp.MustCompile(`^\.?[\w/.+ -]+$`) // a name of its own is checked elsewhere
	found := 0
	for _, page := range pages {
		for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \| (.*) \|$`).FindAllStringSubmatch(read(t, page), -1) {
			for i, cell := range row[1:] {
				if i == 0 && notGo[page] {
					continue
				}
				for _, m := range code.FindAllStringSubmatch(cell, -1) {
					if !word.MatchString(m[1]) {
						found++
						require.Contains(t, sources, m[1], "%s: not compiled", page)
					}
				}
			}
		}
	}
	require.Greater(t, found, 100)
}

// packages are where the names in prose come from.
var packages = map[string]string{
	"algo": "algo", "keyfunc": "keyfunc", "rpckey": "keyfunc/rpckey", "httpmw": "httpmw", "grpcmw": "grpcmw",
	"distributed": "distributed", "rules": "distributed/rules", "rueidisstore": "distributed/rueidisstore", "adaptive": "adaptive", "admin": "httpmw/admin",
	"telemetry": "algo/telemetry", "eventlog": "algo/telemetry/eventlog", "otelmetrics": "algo/telemetry/otelmetrics",
	"guard": "algo/guard", "learn": "algo/learn", "meter": "algo/meter", "prepaid": "algo/prepaid", "reload": "algo/reload", "shares": "algo/shares",
	"backtest": "algo/backtest", "classic": "algo/classic", "throttle": "adaptive/throttle", "algotest": "algo/algotest", "metered": "httpmw/metered", "hints": "*/hints", "client": "*/client", "early": "*/early", "rpc": "httpmw/rpc",
}

// TestPagesNameWhatExists: `package.Name` in a guide is declared in the package.
func TestPagesNameWhatExists(t *testing.T) {
	name := regexp.MustCompile("`[^`\n]*?\\b([a-z]+)\\.([A-Z]\\w*)")
	decl := regexp.MustCompile(`(?m)^(?:func|type|var|const|\t)(?:| |\t| \([^)]*\) )([A-Z]\w*)`)
	declared := map[string]map[string]bool{}
	for pkg, dir := range packages {
		sources, err := filepath.Glob(dir + "/*.go")
		require.NoError(t, err)
		declared[pkg] = map[string]bool{}
		for _, s := range sources {
			if strings.HasSuffix(s, "_test.go") {
				continue
			}
			for _, m := range decl.FindAllStringSubmatch(read(t, s), -1) {
				declared[pkg][m[1]] = true
			}
		}
	}
	pages, err := filepath.Glob("docs/*/*.md")
	require.NoError(t, err)
	found := 0
	for _, page := range append(pages, "README.md", "AGENTS.md", llms, whichWay, "docs/guarantees.md", "docs/comparison.md") {
		for _, m := range name.FindAllStringSubmatch(read(t, page), -1) {
			names, ours := declared[m[1]]
			if !ours {
				continue
			}
			found++
			require.True(t, names[m[2]], "%s: %s.%s", page, m[1], m[2])
		}
	}
	require.Greater(t, found, 50)
}

// TestLogCodesAreExplained: the page of symptoms has every code of a log line, and
// no other.
func TestLogCodesAreExplained(t *testing.T) {
	code := regexp.MustCompile(`"((?:algo|httpmw|grpcmw|keyfunc|adaptive|telemetry|metered|early)\.[a-z0-9_-]+)"`)
	inCode := map[string]bool{"httpmw.undecided": true, "grpcmw.undecided": true} // made of the package's name
	for _, dir := range []string{"algo", "httpmw", "grpcmw", "keyfunc", "adaptive", "internal"} {
		files(t, dir, func(path string) {
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				for _, m := range code.FindAllStringSubmatch(read(t, path), -1) {
					inCode[m[1]] = true
				}
			}
		})
	}
	page := map[string]bool{}
	_, table, _ := strings.Cut(read(t, "docs/guides/troubleshooting.md"), "## By log code")
	for _, m := range regexp.MustCompile("`([a-z]+\\.[a-z0-9_-]+)`").FindAllStringSubmatch(table, -1) {
		page[m[1]] = true
	}
	require.Equal(t, inCode, page)
}

// TestGuidesAreShort: a guide has at most two screens.
func TestGuidesAreShort(t *testing.T) {
	pages, err := filepath.Glob("docs/guides/*.md")
	require.NoError(t, err)
	list := "docs/guides/README.md"
	require.Contains(t, read(t, "README.md"), "("+list+")")
	for _, page := range pages {
		require.LessOrEqual(t, strings.Count(read(t, page), "\n"), 120, page)
		if page != list {
			require.Contains(t, read(t, list), "("+filepath.Base(page)+")", "the list has every guide")
		}
	}
}

// TestLinks: the targets of all links exist, headings included.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"`)
	found := 0
	files(t, ".", func(page string) {
		if !strings.HasSuffix(page, ".md") && page != llms {
			return
		}
		text := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`").ReplaceAllString(read(t, page), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1]+m[2], "#")
			if strings.Contains(target, "://") {
				continue
			}
			found++
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			_, err := os.Stat(path)
			require.NoError(t, err, "%s links to %s", page, m[0])
			if anchor != "" {
				require.Contains(t, anchors(read(t, path)), anchor, "%s links to %s", page, m[0])
			}
		}
	})
	require.Greater(t, found, 100)
}

// anchors are those that the hosting service gives the headings of a page.
func anchors(page string) (names []string) {
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		names = append(names, strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	for _, m := range regexp.MustCompile(`<a (?:id|name)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

// TestGuaranteesAgree: the package comment and the page have the same promises.
func TestGuaranteesAgree(t *testing.T) {
	promise := regexp.MustCompile(`(?ms)^//\t([A-Z]\d)  (.*?)\n//(?:\t[A-Z]\d  |\n)`)
	row := regexp.MustCompile(`(?m)^\| ([A-Z]\d) \| (.*) \|$`)
	page := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(read(t, "docs/guarantees.md"), -1) {
		page[m[1]] = strings.ReplaceAll(m[2], "·", "*")
	}
	require.Greater(t, len(page), 20)
	text := read(t, "doc.go")
	for len(text) > 0 {
		m := promise.FindStringSubmatchIndex(text)
		if m == nil {
			break
		}
		id, says := text[m[2]:m[3]], text[m[4]:m[5]]
		require.Equal(t, page[id], strings.Join(strings.Fields(strings.ReplaceAll(says, "//", " ")), " "), id)
		delete(page, id)
		text = text[m[5]:]
	}
	require.Empty(t, page, "not in doc.go")
}

// TestWorkflowsCallWhatExists: the hosting service runs the commands that everybody
// runs.
func TestWorkflowsCallWhatExists(t *testing.T) {
	targets := regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1)
	workflows, err := filepath.Glob(".github/workflows/*.yml")
	require.NoError(t, err)
	commands := 0
	for _, w := range workflows {
		for _, m := range regexp.MustCompile(`(?m)run: (.*)$`).FindAllStringSubmatch(read(t, w), -1) {
			commands++
			if strings.HasPrefix(m[1], ".ci/") {
				require.FileExists(t, m[1], w)
				continue
			}
			target := strings.TrimPrefix(m[1], "make ")
			require.True(t, slices.ContainsFunc(targets, func(t []string) bool { return t[1] == target }), "%s: %s", w, m[1])
		}
	}
	require.Greater(t, commands, 3)
}

// TestReadmeHasTheTwoCommands: the commands at the top exist.
func TestReadmeHasTheTwoCommands(t *testing.T) {
	readme := read(t, "README.md")
	require.Contains(t, readme, "go run ./examples/quickstart ")
	require.Contains(t, readme, "make test ")
	require.Contains(t, read(t, "Makefile"), "\ntest:")
}

// TestComparisonAgreesWithEvidence: where the comparison says that sluice is slower, the list of losses,
// which is written from what make bench prints first, names the same peers, and with Redis up to as many
// callers.
func TestComparisonAgreesWithEvidence(t *testing.T) {
	_, losses, _ := strings.Cut(read(t, "docs/evidence.md"), "## Where sluice loses\n")
	losses, _, _ = strings.Cut(losses, "- **Targets of")
	_, speed, _ := strings.Cut(read(t, "docs/comparison.md"), "## Speed\n")
	speed, _, _ = strings.Cut(speed, "\n## ")
	var slower string
	for _, row := range regexp.MustCompile(`(?m)^\|.*\|.*\|(.*)\|$`).FindAllStringSubmatch(speed, -1) {
		slower += row[1] + "\n"
	}
	_, prose, _ := strings.Cut(speed, "\n\nFor a bare count")
	for _, peer := range []string{"x/sync", "bulkhead", "redis_rate", "ulule", "uber", "juju", "go-grpc-middleware", "go-limiter", "sync.Map"} {
		require.Equal(t, strings.Contains(losses, peer), strings.Contains(slower+prose, peer), "%s: write both pages by make bench", peer)
	}
	rate := regexp.MustCompile(`redis_rate takes 0\.\d+ of the time alone, 0\.\d+ at 4 callers, 0\.\d+ at 8, and [1-9]\.\d+ at 16; ulule\s+0\.\d+, 0\.\d+, 0\.\d+ and 0\.\d+\.`)
	require.Equal(t, strings.Contains(slower, "redis_rate at up to 8 callers, ulule at up to 16"), rate.MatchString(losses), "write both pages by make bench")
}
