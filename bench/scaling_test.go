package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProcessors(t *testing.T) {
	got, err := processors("1,2,2,4,8", 4)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 4}, got)
	for _, bad := range []string{"", "0", "-1", "two", "1,,2", "8"} {
		_, err := processors(bad, 4)
		require.ErrorContains(t, err, "-scaling", bad)
	}
}
