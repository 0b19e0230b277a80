package decide

import (
	"math"
	"math/bits"
)

// divisor divides by a run-time constant. It multiplies by the inverse: BenchmarkGCRA shows the
// price of a division.
type divisor struct {
	by      int64
	inverse uint64 // 2^64 / by
}

func newDivisor(by int64) divisor { return divisor{by, math.MaxUint64 / uint64(by)} }

// quo returns x / d for x >= 0. The first estimate is at most one too low.
func (d divisor) quo(x int64) int64 {
	hi, _ := bits.Mul64(uint64(x), d.inverse)
	q := int64(hi)
	if x-q*d.by >= d.by {
		q++
	}
	return q
}

// ratio returns floor(x * part / whole) without overflow, for 0 <= part <= whole, 0 < whole.
func ratio(x, part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(part))
	q, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(q)
}

// ratioUp returns ceil(x * part / whole), as ratio.
func ratioUp(x, part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(part))
	lo, carry := bits.Add64(lo, uint64(whole-1), 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(whole))
	return int64(q)
}

func addSaturated(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxInt64
}
