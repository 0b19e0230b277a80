package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMatrix: every handler is used either for tuning or for judging, is
// measured without a limiter and with the default at every load (the shapes under
// overload only), and all cells together take less than forty minutes.
func TestMatrix(t *testing.T) {
	covered := map[string]int{}
	var takes time.Duration
	for _, g := range matrix() {
		require.True(t, slices.Contains(tuned, g.work) != slices.Contains(judged, g.work), g.work)
		for _, l := range g.limiters {
			for _, times := range g.loads {
				p := planOf(time.Duration(g.seconds*1e9), times)
				takes += p.end() + time.Second
				covered[g.work+" "+l]++
			}
		}
	}
	require.Len(t, slices.Concat(tuned, judged), 12)
	for _, work := range slices.Concat(tuned, judged) {
		loads := 4
		if slices.Contains(shapes, work) {
			loads = 2
		}
		for _, l := range ourLimiters {
			require.Equal(t, loads, covered[work+" "+l], work)
		}
		if slices.Contains(shapes, work) {
			continue
		}
		for _, l := range peerLimiters {
			require.Positive(t, covered[work+" "+l], work)
		}
	}
	require.Less(t, takes, 38*time.Minute)
	t.Log(takes)
}

// TestFailedCells: a server that does not start is written down for each load,
// and is no reason to end.
func TestFailedCells(t *testing.T) {
	defer func(was string) { *bin = was }(*bin)
	defer func(was string) { *records = was }(*records)
	*bin, *records = program(t, "echo 'no such work' >&2; exit 1"), t.TempDir()+"/records"
	g := group{work: "7ms", loads: []float64{2, 5}, seconds: 1}
	failed, err := g.measure(rig{work: "7ms", limiter: "default", spin: "1", pinned: true, procs: 1})
	require.NoError(t, err)
	require.Equal(t, 2, failed)
	r, err := readResults(*records)
	require.NoError(t, err)
	require.Len(t, r.cells, 2)
	for i, f := range r.cells {
		require.Equal(t, g.loads[i], f.Times)
		require.Equal(t, "default", f.Limiter)
		require.Contains(t, f.Failed, "ended: exit status 1; it said: no such work")
	}
	_, found := r.find("7ms", "default", 2)
	require.False(t, found)
}
