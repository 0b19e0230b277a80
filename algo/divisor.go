package algo

import (
	"math"
	"math/bits"
)

// divisor divides by a constant that is known at run time only, with a
// multiplication: a division would cost as much as the rest of a decision.
type divisor struct {
	by      int64
	inverse uint64 // 2^64 / by
}

func newDivisor(by int64) divisor { return divisor{by, math.MaxUint64 / uint64(by)} }

// quo is x / d for x >= 0. The estimate is at most one too low.
func (d divisor) quo(x int64) int64 {
	hi, _ := bits.Mul64(uint64(x), d.inverse)
	q := int64(hi)
	if x-q*d.by >= d.by {
		q++
	}
	return q
}
