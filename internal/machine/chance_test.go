package machine

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// dice is a machine of which only the chance matters.
type dice struct {
	Machine
	*rand.PCG
}

func (d dice) Rand() uint64 { return d.Uint64() }

// play is what chance does in a run.
func play(hash Hash) (all []uint64) {
	for i := range 1000 {
		all = append(all, Rand(), hash.Of(strconv.Itoa(i)), uint64(Float64()*1e6))
	}
	return all
}

// simulate plays with a seed.
func simulate(seed uint64) []uint64 {
	Simulate(dice{nil, rand.NewPCG(seed, 1)})
	defer Simulate(nil)
	return play(NewHash())
}

func TestChanceComesFromTheSimulation(t *testing.T) {
	require.Equal(t, simulate(1), simulate(1))
	require.NotEqual(t, simulate(1), simulate(2))
	require.NotEqual(t, play(NewHash()), play(NewHash()), "the real machine is not repeatable")
}

func TestHash(t *testing.T) {
	for _, h := range []Hash{NewHash(), {key: 0x1234567}} {
		require.Equal(t, h.Of("ada"), h.Of("ada"))
		require.NotEqual(t, h.Of("ada"), NewHash().Of("ada"))
		var bins [10]int
		for i := range 10_000 {
			bins[h.Of(strconv.Itoa(i))>>32*10>>32]++
		}
		for _, n := range bins {
			require.InDelta(t, 1000, n, 200)
		}
	}
}

func TestFloat64(t *testing.T) {
	sum := 0.0
	for range 10_000 {
		x := Float64()
		require.True(t, 0 <= x && x < 1)
		sum += x
	}
	require.InDelta(t, 5000, sum, 300)
}
