package cgroup_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cgroup"
)

// The list of mounts, which can have thousands of lines, is read once in ten seconds, and
// not by the caller.
func TestMountsAreKept(t *testing.T) {
	proc := t.TempDir()
	t.Setenv("HOST_PROC", proc)
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(proc, "self"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(proc, "self", name), []byte(text), 0o600))
	}
	write("cgroup", "0::/a/b\n")
	write("mountinfo", "1 2 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	synctest.Test(t, func(t *testing.T) {
		require.Len(t, cgroup.Of("cpu"), 3)
		write("cgroup", "0::/a\n")
		time.Sleep(9 * time.Second)
		require.Len(t, cgroup.Of("cpu"), 3)
		time.Sleep(2 * time.Second)
		require.Len(t, cgroup.Of("cpu"), 3, "read in the background")
		synctest.Wait()
		require.Len(t, cgroup.Of("cpu"), 2)
	})
}
