package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The debt of local limits outlasts a restart. A broken snapshot is reported, and does not
// prevent the start of the gateway.
func TestSnapshot(t *testing.T) {
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	owed := filepath.Join(t.TempDir(), "owed")
	file := "snapshot: {file: " + owed + "}\ntimeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: '" + u +
		"', limits: [{name: daily, key: 'header:X-User', limit: fixed-window 3/day}, {name: hourly, key: ip, limit: 100/h}]}]\n"
	p := start(t, file)
	for _, want := range []int{200, 200, 200, 429} {
		require.Equal(t, want, p.ask("/", "X-User", "ann"))
	}
	require.Equal(t, 200, p.ask("/", "X-User", "bob"))
	p.stop()
	<-p.ended
	info, err := os.Stat(owed)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	p = start(t, file)
	require.Contains(t, p.log.String(), "msg=\"snapshot read\"")
	require.Equal(t, 429, p.ask("/", "X-User", "ann"))
	for _, want := range []int{200, 200, 429} {
		require.Equal(t, want, p.ask("/", "X-User", "bob"))
	}
	p.stop()
	<-p.ended

	require.NoError(t, os.WriteFile(owed, []byte("{"), 0o600))
	p = start(t, file)
	require.Contains(t, p.log.String(), "snapshot not read, some limits begin anew")
	require.Equal(t, 200, p.ask("/", "X-User", "ann"))
}
