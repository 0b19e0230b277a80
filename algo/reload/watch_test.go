package reload_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo/reload"
)

// A changed file is in force within two seconds; one with a mistake changes nothing, has one line in
// the log, and is mended like any other.
func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "limits.json")
		write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
		var log bytes.Buffer
		c := reload.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}

		_, err := reload.Open(t.Context(), path, c)
		require.ErrorIs(t, err, os.ErrNotExist)
		write(`{"a": "many"}`)
		_, err = reload.Open(t.Context(), path, c)
		require.ErrorContains(t, err, "many")

		write(`{"a": "1/h", "b": {"rate": "1/h"}}`)
		limits, err := reload.Open(t.Context(), path, c)
		require.NoError(t, err)
		a, err := limits.Limiter("a")
		require.NoError(t, err)
		require.True(t, spend(t, a, 1).Allowed)
		require.False(t, spend(t, a, 1).Allowed)

		for text, room := range map[string]bool{`{"a": "1/h burst 2"}`: true, `{"a": "9/h", "b": "` + strings.Repeat("?", 1<<20) + `"}`: false, `{"b": "1/h"}`: false} {
			write(text)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			require.Equal(t, room, spend(t, a, 1).Allowed, text)
			write(`{"a": "1/h"}`)
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 2, bytes.Count(log.Bytes(), []byte("level=ERROR")), log.String())
		require.Contains(t, log.String(), `reload: limit \"a\" is in use and missing`)
		require.Less(t, log.Len(), 16<<10)
	})
}
