package sluice_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources returns the text of all files below the root that match keep.
func sources(t *testing.T, keep func(path string) bool) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !keep(path) {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}))
	return all.String()
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// TestGuaranteesNameTestsThatExist: the tables in the package documentation and
// in the README name tests; each of them is there.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	tests := sources(t, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	for _, file := range []string{"doc.go", "README.md"} {
		named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`).FindAllString(read(t, file), -1)
		require.NotEmpty(t, named, file)
		for _, name := range named {
			require.True(t, strings.Contains(tests, "func "+name+"(t *testing.T)") ||
				strings.Contains(tests, "func "+name+"(f *testing.F)"), "%s names %s", file, name)
		}
	}
}

// TestEveryPromiseIsInTheTable, once, with a test; and every fuzz target stands
// beside the promise that it is for.
func TestEveryPromiseIsInTheTable(t *testing.T) {
	table := read(t, "doc.go")
	rows := regexp.MustCompile(`(?m)^//\t([A-Z][0-9])  (?:.*\n//\t    )+`).FindAllStringSubmatch(table, -1)
	var ids []string
	for _, row := range rows {
		ids = append(ids, row[1])
	}
	require.Equal(t, strings.Fields("W1 W2 W3 W4 U1 U2 L1 L2 C1 C2 M1 M2 M3 F1 F2 F3 F4 S1 S2 S3 G1"), ids)
	for _, row := range regexp.MustCompile(`\n//\t[A-Z][0-9]  `).Split(table, -1)[1:] {
		require.Regexp(t, `\b(Test|Fuzz)[A-Z]`, row)
	}
	tests := sources(t, func(path string) bool {
		return strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "internal/promises/")
	})
	for _, target := range regexp.MustCompile(`func (Fuzz\w+)\(f \*testing.F\)`).FindAllStringSubmatch(tests, -1) {
		require.Contains(t, table, target[1])
	}
}

// TestReadmeIsCompiled: every line of Go in the README stands in an example.
func TestReadmeIsCompiled(t *testing.T) {
	examples := sources(t, func(path string) bool {
		return strings.HasPrefix(path, "examples") && strings.HasSuffix(path, ".go") ||
			strings.HasSuffix(path, "example_test.go")
	})
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			require.True(t, strings.Contains(examples, strings.TrimSpace(line)), "%s", line)
		}
	}
}

// TestReadmeHasTheTwoCommands: what is promised at the top can be run.
func TestReadmeHasTheTwoCommands(t *testing.T) {
	readme := read(t, "README.md")
	require.Contains(t, readme, "go run ./examples/quickstart ")
	require.Contains(t, readme, "make test ")
	require.Contains(t, read(t, "Makefile"), "\ntest:")
}
