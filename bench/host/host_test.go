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

func TestProcessors(t *testing.T) {
	got, err := Processors("1,2,2,4,8", 4)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 4}, got)
	for _, bad := range []string{"", "0", "-1", "two", "1,,2", "8"} {
		_, err := Processors(bad, 4)
		require.ErrorContains(t, err, "processors", bad)
	}
}
