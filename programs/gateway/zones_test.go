//go:build unix

package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Not every base of an image has a database of time zones, so the programs bring one.
func TestTimeZonesAreEmbedded(t *testing.T) {
	for _, program := range []string{".", "../rls"} {
		c := exec.Command("go", "list", "-deps", ".")
		c.Dir = program
		said, err := c.Output()
		require.NoError(t, err)
		require.Contains(t, strings.Fields(string(said)), "time/tzdata", program)
	}
}
