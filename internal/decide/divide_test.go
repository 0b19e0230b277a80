package decide

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDivisor(t *testing.T) {
	rnd := rand.New(rand.NewPCG(41, 42))
	for range 100_000 {
		d := newDivisor(1 + rnd.Int64N(1<<(1+rnd.IntN(62))))
		for _, x := range []int64{
			0, 1, d.by - 1, d.by, d.by + 1, math.MaxInt64, math.MaxInt64 / d.by * d.by,
			rnd.Int64N(math.MaxInt64),
		} {
			if x = max(x, 0); d.quo(x) != x/d.by { // require takes longer than the division
				t.Fatalf("%d / %d: got %d, want %d", x, d.by, d.quo(x), x/d.by)
			}
		}
	}
}

func TestRatio(t *testing.T) {
	rnd := rand.New(rand.NewPCG(43, 44))
	for range 10_000 {
		whole := 1 + rnd.Int64N(1<<30)
		part, x := rnd.Int64N(whole+1), rnd.Int64N(1<<30)
		require.Equal(t, x*part/whole, ratio(x, part, whole))
		require.Equal(t, (x*part+whole-1)/whole, ratioUp(x, part, whole))
		require.LessOrEqual(t, ratioUp(math.MaxInt64, part, whole), int64(math.MaxInt64))
	}
}
