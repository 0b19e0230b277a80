package decide

import (
	"fmt"
	"math"
	"math/bits"
)

// meter is one bucket of a [ThreeColor] with immutable parameters. A bucket that gains count tokens
// each period steps counts in parts: a token has period of them and each step brings count, so no
// fraction is lost.
type meter struct {
	count  int64 // parts a step
	period int64 // parts a token
	size   int64 // tokens
	parts  int64 // size * period
}

// maxParts leaves room for debts on top of a bucket.
const maxParts = math.MaxInt64 / 8

// newMeter makes a meter; the error uses the names rate and burst.
func newMeter(r Rate, size int64, rate, burst string) (m meter, err error) {
	if err := r.Validate(); err != nil {
		return m, fmt.Errorf("%s: %w", rate, err)
	}
	period := int64(r.Period / r.step)
	d := gcd(r.Count, period)
	m = meter{count: r.Count / d, period: period / d, size: size}
	switch {
	case size < 0:
		return m, fmt.Errorf("%s is %d, want 0 or more", burst, size)
	case size > maxParts/m.period:
		return m, fmt.Errorf("%s is %d: too much to count exactly at %v, want at most %d",
			burst, size, r, maxParts/m.period)
	}
	m.parts = size * m.period
	if m.parts/m.count > int64(MaxSpan/r.step) {
		return m, fmt.Errorf("%s is %d: at %v it takes longer than %v to fill", burst, size, r, MaxSpan)
	}
	return m, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// slowerThan compares rates.
func (m *meter) slowerThan(other *meter) bool {
	ah, al := bits.Mul64(uint64(m.count), uint64(other.period))
	bh, bl := bits.Mul64(uint64(other.count), uint64(m.period))
	return ah < bh || ah == bh && al < bl
}

// drain returns the lack of a bucket dt steps later, and the parts that overflowed.
func (m *meter) drain(lack, dt int64) (left, spilled int64) {
	hi, gain := bits.Mul64(uint64(dt), uint64(m.count))
	if hi > 0 || gain > math.MaxInt64 {
		return 0, math.MaxInt64
	}
	return max(lack-int64(gain), 0), max(int64(gain)-lack, 0)
}

// holds reports whether n tokens are there.
func (m *meter) holds(lack, n int64) bool { return n <= m.size && lack+n*m.period <= m.parts }

// tokens returns the number of whole tokens.
func (m *meter) tokens(lack int64) int64 { return max(m.parts-lack, 0) / m.period }

// missing returns the parts to come until n tokens are there, never if they do not fit.
func (m *meter) missing(lack, n int64) int64 {
	if n > m.size {
		return never
	}
	return max(lack+n*m.period-m.parts, 0)
}

// after returns the number of steps in which parts come in.
func (m *meter) after(parts int64) int64 {
	if parts == never {
		return never
	}
	steps := parts / m.count
	if parts%m.count != 0 {
		steps++
	}
	return steps
}

// forceCharge returns the lack of a bucket after it takes tokens that it may not have: extra ones
// until it lacks twice its size, and refunded ones that are charged again until it lacks four times
// its size.
func (m *meter) forceCharge(lack, again, extra int64) int64 {
	lack = min(lack+min(extra, m.size)*m.period, max(lack, 2*m.parts))
	return min(lack+min(again, m.size)*m.period, max(lack, 4*m.parts))
}

// cut reports whether a bucket whose lack went from was to is took fewer than the again tokens that
// a refund may give back: then it must not.
func (m *meter) cut(was, is, again int64) bool { return is-was < again*m.period }

// refundable returns how many parts of n of the charged tokens may be given back, elapsed steps
// after the charge.
func (m *meter) refundable(lack, charged, n, elapsed int64) int64 {
	left, _ := m.drain(min(charged, m.size)*m.period, elapsed)
	return min(left, min(n, m.size)*m.period, lack)
}
