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

// TestScalingTables: each work on one processor, and a column for each number of them.
func TestScalingTables(t *testing.T) {
	res := func(cores int, ns ...float64) result {
		r := result{work: work{title: "One bucket", cores: cores, us: "sluice Allow"}}
		for i, name := range []string{"floor: clock, swap", "sluice Allow"} {
			r.rows = append(r.rows, row{contender: contender{name: name, kind: kind(1 + i)}, ns: []float64{ns[i]}})
		}
		return r
	}
	page := scalingTables([]int{1, 2}, [][]result{{res(1, 20, 30)}, {res(2, 10, 12)}})
	require.Contains(t, page, "## One bucket\n\n| on processors: | 1 | 2 |\n|---|--:|--:|\n"+
		"| floor: clock, swap | 20.0 (1.00) | 10.0 (1.00) |\n| sluice Allow | 30.0 (1.50) | 12.0 (1.20) |\n")
	for _, w := range scaled(2) {
		require.Equal(t, 2, w.cores)
		require.NotEmpty(t, w.title)
	}
}
