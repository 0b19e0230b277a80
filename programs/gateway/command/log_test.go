package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/gateway/config"
)

// With -log json every line of the log is an object, also those of the library's warnings; a format that
// does not exist is named.
func TestLogAsJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	require.NoError(t, os.WriteFile(path, []byte("routes: [{pattern: /, upstream: 'http://127.0.0.1:1'}]\n"), 0o600))
	var everywhere *slog.Logger
	c := Command{Name: "x", About: func(*config.File) (string, error) { return "", nil }, everywhere: func(l *slog.Logger) { everywhere = l },
		New: func(_ *config.File, log *slog.Logger, _ io.Writer) (Service, error) {
			log.Info("a line", "key", 7)
			return nil, errors.New("enough")
		}}
	var stderr bytes.Buffer
	require.Equal(t, 1, c.Run(t.Context(), []string{"-config", path, "-log", "json"}, io.Discard, &stderr, nil))
	everywhere.Warn("another")
	for _, line := range []string{"a line", "another"} {
		var object struct{ Msg string }
		require.Contains(t, stderr.String(), line)
		for l := range strings.Lines(stderr.String()) {
			if strings.Contains(l, line) {
				require.NoError(t, json.Unmarshal([]byte(l), &object))
				require.Equal(t, line, object.Msg)
			}
		}
	}
	stderr.Reset()
	require.Equal(t, 2, c.Run(t.Context(), []string{"-log", "xml"}, io.Discard, &stderr, nil))
	require.Equal(t, "x: -log is \"xml\", want text or json\n", stderr.String())
}

// The log speaks of the fields of the file where the library speaks of Go.
func TestLogHasTheNamesOfTheFile(t *testing.T) {
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, LogOptions)).Warn("keyfunc: with IPConfig.TrustAll and without Hops", "do", "raise MaxKeys, or find the client")
	require.Contains(t, out.String(), `do="raise keys of the limit, or find`)
}
