package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFacts(t *testing.T) {
	var f Facts
	f.read("processor\t: 0\nmodel name\t: A: B\nflags\t\t: fpu hypervisor sse\n\nprocessor\t: 1\nmodel name\t: A: B\n")
	require.Equal(t, Facts{CPU: "A: B", Cores: 2, Virtual: true}, f)
	require.Equal(t, "A: B, 2 cores, a virtual machine, ", f.String())
}
