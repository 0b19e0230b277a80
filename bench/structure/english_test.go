package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Comments, strings and Markdown count; code does not. A phrase may be broken
// over two lines.
func TestProse(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.go":          "package a\n\n// It is what\n// is left, 20 ms at most.\nvar told = \"nobody stands\"\n",
		"b.md":          "This tells what is new.\n",
		"testdata/c.md": "what is ignored\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	tree := &tree{root: root}
	for i, want := range []string{"2 (500.0)", "1 (250.0)", "1 (250.0)", "1 (250.0)", "1 (250.0)", "0 (0.0)"} {
		got, err := englishRows[i].measure(tree)
		require.NoError(t, err)
		require.Equal(t, want, got, englishRows[i].fact)
	}
}
