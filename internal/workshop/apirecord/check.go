package apirecord

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the record of the public API")

const root = "github.com/sluice-go/sluice"

// Check compares the public packages of the module in the current directory
// with the files in the directory record, or writes them with the flag -update.
// It also requires that "go doc" shows every method that a user may call.
func Check(t *testing.T, record string) {
	packages, err := Load()
	require.NoError(t, err)
	require.NotEmpty(t, packages)
	for _, p := range packages {
		name := p.Name(root)
		t.Run(name, func(t *testing.T) {
			hidden, err := p.Hidden()
			require.NoError(t, err)
			require.Empty(t, hidden, "go doc does not show these")

			file := filepath.Join(record, strings.ReplaceAll(name, "/", "-")+".txt")
			text := strings.Join(p.Declarations(), "\n") + "\n"
			if *update {
				require.NoError(t, os.MkdirAll(record, 0o755))
				require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
				return
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err, "no record: run make api")
			require.Equal(t, strings.Split(string(want), "\n"), strings.Split(text, "\n"),
				"the public API has changed: if that is intended, run make api")
		})
	}
}
