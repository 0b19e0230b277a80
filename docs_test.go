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

// TestReadmeIsCompiled: every line of Go in the README is in an example.
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

// TestReadmeHasTheTwoCommands: the commands at the top exist.
func TestReadmeHasTheTwoCommands(t *testing.T) {
	readme := read(t, "README.md")
	require.Contains(t, readme, "go run ./examples/quickstart ")
	require.Contains(t, readme, "make test ")
	require.Contains(t, read(t, "Makefile"), "\ntest:")
}
