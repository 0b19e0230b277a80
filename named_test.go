package sluice_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTracesAreTrue: the functions in the traces of ARCHITECTURE.md are declared in the files
// that it names.
func TestTracesAreTrue(t *testing.T) {
	step := regexp.MustCompile("(?m)^\\| ([\\w/]+\\.(?:go|lua)) \\| (`[^|]*`) \\|")
	found := 0
	for _, row := range step.FindAllStringSubmatch(read(t, "ARCHITECTURE.md"), -1) {
		source := read(t, row[1])
		if script := strings.TrimSuffix(row[1], "bucket.lua"); script != row[1] {
			source += read(t, script+"prelude.lua")
		}
		for name := range strings.SplitSeq(strings.ReplaceAll(row[2], "`", ""), ", ") {
			found++
			require.Regexp(t, `(?m)^(func|func \([^)]*\)|var|local function) `+name+`\b`, source, row[1])
		}
	}
	require.Greater(t, found, 60)
}

// TestChargesAreTested: the tests that the table of what is charged names exist.
func TestChargesAreTested(t *testing.T) {
	named := regexp.MustCompile("`(Test\\w+)` ([\\w/]+)").FindAllStringSubmatch(read(t, "docs/guarantees.md"), -1)
	require.Greater(t, len(named), 9)
	for _, m := range named {
		sources := strings.Builder{}
		paths, err := filepath.Glob(m[2] + "/*_test.go")
		require.NoError(t, err)
		for _, path := range paths {
			sources.WriteString(read(t, path))
		}
		require.Contains(t, sources.String(), "func "+m[1]+"(", m[2])
	}
}

// TestCodesOfTheLog: the troubleshooting guide has the line of each code as the source has it.
func TestCodesOfTheLog(t *testing.T) {
	page := read(t, "docs/guides/troubleshooting.md")
	warned := regexp.MustCompile(`Code:\s+"(.+)",\s+Message:\s+"(.+)",\s+Do:\s+"(.+?)"`)
	sampled := regexp.MustCompile(`\{"(telemetry\..+)", "(.+)"\}()`)
	rows := map[string]bool{}
	files(t, ".", func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "examples") {
			return
		}
		source := read(t, path)
		lines := append(warned.FindAllStringSubmatch(source, -1), sampled.FindAllStringSubmatch(source, -1)...)
		require.Len(t, lines, strings.Count(source, "warning.Line{")+strings.Count(source, "{Line: Line{")+strings.Count(source, `{"telemetry.`), path)
		for _, l := range lines {
			rows[l[1]] = true
			require.Contains(t, page, "\n| `"+l[1]+"` | "+l[2]+" | "+l[3], path)
		}
	})
	listed := regexp.MustCompile("(?m)^\\| `(\\w+\\.[\\w-]+)` \\| \\w").FindAllStringSubmatch(page, -1)
	require.Len(t, listed, len(rows), "no code is listed that the source does not have")
	require.Greater(t, len(rows), 20)
}
