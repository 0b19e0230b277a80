package decide

import (
	"fmt"
	"math"
)

// Color is the result of a [ThreeColor]. Greater is redder.
type Color uint8

// The colors.
const (
	Green Color = iota
	Yellow
	Red
)

// ThreeColor marks units with three colors after two token buckets (RFC 2697,
// RFC 2698, RFC 4115). The buckets start full and are counted exactly.
type ThreeColor struct {
	plan              plan
	committed, excess meter // excess is the peak bucket of RFC 2698
	shift             uint8 // 2^shift ticks are a step
}

// ColorState is the state of one key: the parts that the buckets lack at the
// instant last. The zero state has full buckets.
type ColorState struct {
	last              int64 // in steps
	committed, excess int64
	color             Color // of the last charge
}

// Inherit copies from.
func (s *ColorState) Inherit(from *ColorState) { *s = *from }

// plan connects the two buckets.
type plan uint8

const (
	spilling    plan = iota // RFC 2697: the second gets the overflow of the first
	peaking                 // RFC 2698: green takes from both
	independent             // RFC 4115
)

// NewSRTCM makes the single rate marker of RFC 2697. The error names field and
// value.
func NewSRTCM(cir Rate, cbs, ebs int64) (*ThreeColor, error) {
	if cbs == 0 && ebs == 0 {
		return nil, errBothEmpty
	}
	return twoBuckets(spilling, cir, cbs, cir, ebs, "cir", "ebs")
}

// NewTRTCM makes the two rate marker of RFC 2698. The error names field and
// value.
func NewTRTCM(cir Rate, cbs int64, pir Rate, pbs int64) (*ThreeColor, error) {
	m, err := twoBuckets(peaking, cir, cbs, pir, pbs, "pir", "pbs")
	switch {
	case err != nil:
		return nil, err
	case cbs == 0:
		return nil, fmt.Errorf("cbs is 0, want 1 or more")
	case pbs == 0:
		return nil, fmt.Errorf("pbs is 0, want 1 or more")
	case m.excess.slowerThan(&m.committed):
		return nil, fmt.Errorf("pir is %v, slower than cir, which is %v", pir, cir)
	}
	return m, nil
}

// NewRFC4115 makes the two rate marker of RFC 4115. The error names field and
// value.
func NewRFC4115(cir Rate, cbs int64, eir Rate, ebs int64) (*ThreeColor, error) {
	if cbs == 0 && ebs == 0 {
		return nil, errBothEmpty
	}
	return twoBuckets(independent, cir, cbs, eir, ebs, "eir", "ebs")
}

var errBothEmpty = fmt.Errorf("cbs and ebs are both 0, want one of them larger")

// twoBuckets makes a marker; the error names the rate and the size of the second bucket rate and
// burst.
func twoBuckets(p plan, cir Rate, cbs int64, xir Rate, xbs int64, rate, burst string) (*ThreeColor, error) {
	committed, err := newMeter(cir, cbs, "cir", "cbs")
	if err != nil {
		return nil, err
	}
	excess, err := newMeter(xir, xbs, rate, burst)
	if err != nil {
		return nil, err
	}
	return &ThreeColor{p, committed, excess, cir.shift}, nil
}

// Mark charges n units that came in as in, and returns their color. Red units
// charge nothing, and no units change nothing.
func (m *ThreeColor) Mark(s *ColorState, now, n int64, in Color) Color {
	next, out := m.mark(*s, now>>m.shift, n, in)
	if out != Red && n > 0 {
		*s = next
	}
	return out
}

func (m *ThreeColor) mark(s ColorState, now, n int64, in Color) (ColorState, Color) {
	s = m.refill(s, now)
	out := m.color(s, n, in)
	if out != Red {
		m.charge(&s, n, out)
	}
	s.color = out
	return s, out
}

// refill returns the state at now. A reading that is not after the last one fills nothing.
func (m *ThreeColor) refill(s ColorState, now int64) ColorState {
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

func (m *ThreeColor) color(s ColorState, n int64, in Color) Color {
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

// charge takes n tokens from the buckets that out takes from.
func (m *ThreeColor) charge(s *ColorState, n int64, out Color) {
	if out == Green {
		s.committed += n * m.committed.period
	}
	if m.takesExcess(out) {
		s.excess += n * m.excess.period
	}
}

// takesExcess reports whether units of color out take from the second bucket.
func (m *ThreeColor) takesExcess(out Color) bool {
	return out == Yellow || out == Green && m.plan == peaking
}

// Expiry returns the instant from which all buckets are full, as in the zero state.
func (m *ThreeColor) Expiry(s *ColorState, _ int64) int64 {
	first, second := m.untilFull(*s)
	return m.ticks(s.last + max(first, second))
}

// untilFull returns how long each bucket takes to fill, in steps from s.last.
func (m *ThreeColor) untilFull(s ColorState) (committed, excess int64) {
	committed = m.committed.after(s.committed)
	if m.plan == spilling {
		if s.excess == 0 {
			return committed, 0
		}
		return committed, m.committed.after(s.committed + s.excess)
	}
	return committed, m.excess.after(s.excess)
}

// until returns how long it takes until each bucket has n tokens, in steps from s.last, never if
// they do not fit.
func (m *ThreeColor) until(s ColorState, n int64) (committed, excess int64) {
	committed = m.committed.after(m.committed.missing(s.committed, n))
	missing := m.excess.missing(s.excess, n)
	if m.plan == spilling && missing > 0 && missing != never {
		missing += s.committed
	}
	return committed, m.excess.after(missing)
}

// ticks converts a span of steps, saturating.
func (m *ThreeColor) ticks(steps int64) int64 {
	return min(steps, math.MaxInt64>>m.shift) << m.shift
}
