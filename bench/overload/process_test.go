package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program is a shell script in place of the server.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	return path
}

// TestServerEnds: a server that ends by itself is an error with its last
// output; a server that is stopped is none.
func TestServerEnds(t *testing.T) {
	_, err := startServer(exec.Command(program(t, "echo chatter >&2; echo 'panic: no' >&2; echo goroutine 1 >&2; exit 3"), "-work", "5ms"))
	require.ErrorContains(t, err, "-work 5ms ended: exit status 3; it said: panic: no")

	s, err := startServer(exec.Command(program(t, "echo here; exec sleep 600")))
	require.NoError(t, err)
	require.Equal(t, "here", s.addr)
	require.NoError(t, s.stop())

	s, err = startServer(exec.Command(program(t, "echo here; echo why >&2; exit 1")))
	require.NoError(t, err)
	<-s.exited
	require.ErrorContains(t, s.stop(), "it said: why")
}

func TestLast(t *testing.T) {
	require.Empty(t, last(""))
	require.Equal(t, "the end", last(strings.Repeat("noise ", 1000)+"\nthe end\n"))
}
