package algo

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// meter is one bucket of a marker with immutable parameters. A bucket that
// gains count tokens each period nanoseconds is counted in parts of which a
// token has period and each nanosecond brings count, so that no fraction is
// lost.
type meter struct {
	count  int64 // parts a nanosecond
	period int64 // parts a token
	size   int64 // tokens
	parts  int64 // size * period
}

// mostParts leaves room for what is owed on top of a bucket.
const mostParts = math.MaxInt64 / 8

// meters is the state of one key: what the buckets lack, in parts, at the
// instant last. The zero value is full buckets.
type meters struct {
	last              int64 // ns
	committed, excess int64
}

// plan is how the buckets of a marker belong together.
type plan uint8

const (
	spilling    plan = iota // RFC 2697: the second gets what the first spills
	peaking                 // RFC 2698: green takes from both
	independent             // RFC 4115
)

// marking is a marker's algorithm with immutable parameters. excess is the
// peak bucket of RFC 2698.
type marking struct {
	plan              plan
	committed, excess meter
}

// twoBuckets validates; the error names field and value.
func twoBuckets(p plan, cir Rate, cbs int64, xir Rate, xbs int64, rate, burst string) (m marking, err error) {
	m.plan = p
	if m.committed, err = newMeter(cir, cbs, "cir", "cbs"); err != nil {
		return m, err
	}
	m.excess, err = newMeter(xir, xbs, rate, burst)
	return m, err
}

func newMeter(r Rate, size int64, rate, burst string) (m meter, err error) {
	if err := r.validate(); err != nil {
		return m, fmt.Errorf("%s: %w", rate, err)
	}
	d := gcd(r.Count, int64(r.Period))
	m = meter{count: r.Count / d, period: int64(r.Period) / d, size: size}
	switch {
	case size < 0:
		return m, fmt.Errorf("%s is %d, want 0 or more", burst, size)
	case size > mostParts/m.period:
		return m, fmt.Errorf("%s is %d: too much to count exactly at %v, want %d at most",
			burst, size, r, mostParts/m.period)
	}
	m.parts = size * m.period
	if m.parts/m.count > int64(maxSpan) {
		return m, fmt.Errorf("%s is %d: at %v it takes longer than %v to fill", burst, size, r, maxSpan)
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
func (m meter) slowerThan(other meter) bool {
	ah, al := bits.Mul64(uint64(m.count), uint64(other.period))
	bh, bl := bits.Mul64(uint64(other.count), uint64(m.period))
	return ah < bh || ah == bh && al < bl
}

// drain returns what a bucket lacks dt nanoseconds later, and the parts that
// it could not take.
func (m meter) drain(lack, dt int64) (left, spilled int64) {
	hi, gain := bits.Mul64(uint64(dt), uint64(m.count))
	if hi > 0 || gain > math.MaxInt64 {
		return 0, math.MaxInt64
	}
	return max(lack-int64(gain), 0), max(int64(gain)-lack, 0)
}

// holds reports whether n tokens are there.
func (m meter) holds(lack, n int64) bool {
	return n <= m.size && lack+n*m.period <= m.parts
}

// tokens is how many whole tokens are there.
func (m meter) tokens(lack int64) int64 { return max(m.parts-lack, 0) / m.period }

// missing is how many parts must come in until n tokens are there, never if
// they do not fit.
func (m meter) missing(lack, n int64) int64 {
	if n > m.size {
		return never
	}
	return max(lack+n*m.period-m.parts, 0)
}

// after is how many nanoseconds it takes until parts have come in.
func (m meter) after(parts int64) int64 {
	if parts == never {
		return never
	}
	ns := parts / m.count
	if parts%m.count != 0 {
		ns++
	}
	return ns
}

// refill returns the meters at now. A reading that is not after the last one
// fills nothing.
func (m *marking) refill(s meters, now int64) meters {
	if now <= s.last {
		return s
	}
	dt := now - s.last
	var spilled int64
	s.last = now
	s.committed, spilled = m.committed.drain(s.committed, dt)
	if m.plan == spilling {
		s.excess = max(s.excess-spilled, 0)
	} else {
		s.excess, _ = m.excess.drain(s.excess, dt)
	}
	return s
}

// decide is the algorithm: what color n units of color in get at now, and what
// becomes of the meters. What is Red charges nothing.
func (m *marking) decide(s meters, now, n int64, in Color) (next meters, out Color) {
	next = m.refill(s, now)
	out = m.color(next, n, in)
	if out == Red {
		return s, Red
	}
	m.charge(&next, n, out)
	return next, out
}

func (m *marking) color(s meters, n int64, in Color) Color {
	green := in == Green && m.committed.holds(s.committed, n)
	yellow := in <= Yellow && m.excess.holds(s.excess, n)
	switch {
	case m.plan == peaking && !yellow:
		return Red
	case green:
		return Green
	case yellow:
		return Yellow
	}
	return Red
}

// charge takes n tokens from the buckets that out takes from, or puts -n back.
func (m *marking) charge(s *meters, n int64, out Color) {
	if out == Green {
		s.committed += n * m.committed.period
	}
	if out == Yellow || m.plan == peaking {
		s.excess += n * m.excess.period
	}
}

// fullAt is the instant at which nothing is lacking.
func (m *marking) fullAt(s meters) int64 {
	first, second := m.untilFull(s)
	return s.last + max(first, second)
}

// untilFull is how long each bucket takes to fill, in nanoseconds from s.last.
func (m *marking) untilFull(s meters) (committed, excess int64) {
	committed = m.committed.after(s.committed)
	if m.plan == spilling {
		if s.excess == 0 {
			return committed, 0
		}
		return committed, m.committed.after(s.committed + s.excess)
	}
	return committed, m.excess.after(s.excess)
}

// until is how long it takes until n tokens are in each bucket, in nanoseconds
// from s.last, never if they do not fit.
func (m *marking) until(s meters, n int64) (committed, excess int64) {
	committed = m.committed.after(m.committed.missing(s.committed, n))
	missing := m.excess.missing(s.excess, n)
	if m.plan == spilling && missing > 0 && missing != never {
		missing += s.committed
	}
	return committed, m.excess.after(missing)
}

// nanos converts, with never as Forever.
func nanos(ns int64) time.Duration {
	if ns == never {
		return Forever
	}
	return time.Duration(ns)
}
