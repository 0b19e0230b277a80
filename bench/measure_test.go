package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func TestMedianAndQuartiles(t *testing.T) {
	for _, c := range []struct {
		xs           []float64
		median       float64
		lower, upper float64
	}{
		{nil, 0, 0, 0},
		{[]float64{7}, 7, 7, 7},
		{[]float64{3, 1}, 2, 1, 3},
		{[]float64{9, 1, 5}, 5, 1, 9},
		{[]float64{8, 1, 2, 3, 4, 5, 6, 7}, 4.5, 3, 6},
	} {
		require.Equal(t, c.median, median(c.xs), c.xs)
		low, high := quartiles(c.xs)
		require.Equal(t, []float64{c.lower, c.upper}, []float64{low, high}, c.xs)
	}
}

// TestPairedIgnoresSlowRounds: a round in which the machine is ten times slower
// changes no multiple.
func TestPairedIgnoresSlowRounds(t *testing.T) {
	xs, ys := []float64{20, 200, 20}, []float64{10, 100, 10}
	require.Equal(t, 2.0, paired(xs, ys, quotient))
	require.Equal(t, 10.0, paired(xs, ys, difference))
}

// TestContendersDoTheirWork runs every group for moments. measure fails after
// a wrong admission or denial by a contender.
func TestContendersDoTheirWork(t *testing.T) {
	all := append(works(), redisWorks(redistest.Start(t).Addr())...)
	for _, w := range all {
		t.Run(w.id, func(t *testing.T) {
			if strings.HasPrefix(w.id, "keyed-131072") {
				w.make, w.warm = func() []contender { return keyed(keys(4096)) }, 0
			}
			res, err := measure(w, plan{rounds: 2, sample: 100 * time.Microsecond})
			require.NoError(t, err)
			require.Equal(t, floor, res.floor().kind)
			_, ok := res.row(w.us)
			require.True(t, ok, "%q is not in the group", w.us)
			for _, x := range res.rows {
				require.Len(t, x.ns, 2, x.name)
				require.Positive(t, x.median(), x.name)
			}
		})
	}
}

// TestOursAllocateAsPromised: allocations are exact, so they can be asserted.
func TestOursAllocateAsPromised(t *testing.T) {
	promised := map[string]float64{
		"bucket/sluice Allow": 0, "bucket/sluice Acquire and Release": 0,
		"keyed-1024/sluice Allow": 0, "keyed-1024/sluice Acquire and Release": 0,
		"http/" + httpHeaders: 2, "http/" + httpNone: 0,
		"grpc/sluice PeerIP":     0,
		"inflight/" + fixedLimit: 0, "inflight-denied/" + fixedLimit: 0,
		"adaptive/" + bbrLimit: 0, "adaptive-denied/" + bbrLimit: 0,
		"adaptive/" + defaultLimit: 0, "adaptive-denied/" + defaultLimit: 0,
		"throttle/" + throttleOurs: 0,
	}
	checked := 0
	for _, w := range works() {
		if strings.HasPrefix(w.id, "keyed-131072") || strings.HasSuffix(w.id, "-2") {
			continue
		}
		for _, c := range w.make() {
			if most, ok := promised[w.id+"/"+c.name]; ok {
				checked++
				allocs, _ := allocations(c, 4096)
				require.LessOrEqual(t, allocs, most, c.name)
			}
		}
	}
	require.Len(t, promised, checked)
}

func TestVerifyRefusesOtherWork(t *testing.T) {
	cheat := contender{name: "cheat", run: func(n int) int { return n - 1 }}
	for _, w := range []work{
		{id: "w", us: "cheat", cores: 1, make: func() []contender { return []contender{cheat} }},
		{id: "w", us: "cheat", cores: 2, denied: true, make: func() []contender { return []contender{cheat} }},
	} {
		_, err := measure(w, plan{rounds: 1, sample: time.Microsecond})
		require.ErrorContains(t, err, "w: cheat admitted")
	}
}
