package rules

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// A version that comes late changes nothing.
func TestLaterVersionStays(t *testing.T) {
	r := &Rules{logger: slog.Default()}
	e := &entry{rules: r, name: "n"}
	e.note(2, tombstone)
	e.note(1, "{}")
	require.Equal(t, int64(2), e.version)
	require.Equal(t, tombstone, e.text)
	require.Equal(t, int64(2), r.sum)
}
