package decide

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"
)

// Shares divides a token bucket between children. Each child with a floor has a bucket of its own
// that the floor fills; the overflow of a full bucket, and the rest of the rate, fill the common
// bucket, from which all children may take the units that their own lacks. So idle units are lent,
// but a floor never is, and all children together keep the bound of the one bucket: the depths add
// up to its burst, the rates to its rate. (Token sharing in an envelope with the coupling of MEF
// 10.3, section 12.)
//
// Time counts in steps, and units in parts: a unit has period parts, and a rate of n units a period
// brings n parts a step, so no fraction is lost.
type Shares struct {
	period int64   // parts a unit
	rest   int64   // parts a step of the rate that no child has
	floors []int64 // parts a step
	depths []int64 // parts
	common int64   // parts, depth of the common bucket
	burst  int64   // units, of all
	shift  uint8   // 2^shift ticks are a step
}

// SharesState has the parts that the buckets lack at the instant last. The zero state
// has full buckets.
type SharesState struct {
	last   int64 // in steps
	common int64
	own    []int64 // empty: all full
	paid   int64   // by the child's bucket for the latest charge
}

// Inherit copies from and keeps the memory of s.
func (s *SharesState) Inherit(from *SharesState) {
	s.last, s.common, s.paid, s.own = from.last, from.common, from.paid, append(s.own[:0], from.own...)
}

// MaxChildren bounds the children of a [Shares].
const MaxChildren = 64

// NewShares divides r and burst. floors are units in a period of r. Half of the burst is for floors
// in proportion to the rate, but at least one unit for each child with a floor, and at most a
// second of the floor. The error names field and value.
func NewShares(r Rate, burst int64, floors []int64) (*Shares, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	sum := int64(0)
	for _, f := range floors {
		if f < 0 || f > r.Count-sum {
			return nil, fmt.Errorf("floors are %v, want 0 or more, and %d at most together", floors, r.Count)
		}
		sum += f
	}
	if len(floors) < 1 || len(floors) > MaxChildren {
		return nil, fmt.Errorf("there are %d children, want 1 to %d", len(floors), MaxChildren)
	}
	p := &Shares{period: int64(r.Period / r.step), rest: r.Count - sum, floors: slices.Clone(floors), burst: burst, shift: r.shift}
	p.reduce()
	most := maxParts / p.period
	if r.name == Microseconds.name {
		most = MaxBalance / 8 / p.period // a script counts in floating point
	}
	if burst < 1 || burst > most {
		return nil, fmt.Errorf("burst is %d, want 1 to %d at %v", burst, most, r)
	}
	if _, err := r.span("burst", burst); err != nil {
		return nil, err
	}
	return p, p.divide(r)
}

// SharesParams are the numbers that a script decides with, in parts; see [Shares].
type SharesParams struct {
	Period, Rest, Common int64
	Floors, Depths       []int64
}

// Params returns the numbers of p.
func (p *Shares) Params() SharesParams {
	return SharesParams{p.period, p.rest, p.common, p.floors, p.depths}
}

// State returns the state whose buckets lack common and own parts at now.
func (p *Shares) State(now, common int64, own []int64) *SharesState {
	return &SharesState{last: now >> p.shift, common: common, own: slices.Clone(own)}
}

// Lacks returns the parts that the buckets lack.
func (s *SharesState) Lacks() (common int64, own []int64) { return s.common, s.own }

// reduce divides the parts by the common divisor of period and rates.
func (p *Shares) reduce() {
	d := gcd(p.period, p.rest)
	for _, f := range p.floors {
		d = gcd(d, f)
	}
	p.period, p.rest = p.period/d, p.rest/d
	for i := range p.floors {
		p.floors[i] /= d
	}
}

// divide divides the burst into depths.
func (p *Shares) divide(r Rate) error {
	p.common = p.burst * p.period
	for _, f := range p.floors {
		var units int64
		if f > 0 {
			hi, lo := bits.Mul64(uint64(p.burst), uint64(f))
			half, _ := bits.Div64(hi, lo, 2*uint64(p.total()))
			second := f * int64(time.Second/r.step) / p.period
			units = max(min(int64(half), second), 1)
		}
		p.depths = append(p.depths, units*p.period)
		p.common -= units * p.period
	}
	if p.common < p.period {
		return fmt.Errorf("burst is %d, want one unit for each child with a floor and one more", p.burst)
	}
	return nil
}

// total returns the whole rate, in parts a step.
func (p *Shares) total() int64 {
	sum := p.rest
	for _, f := range p.floors {
		sum += f
	}
	return sum
}

// refill advances s to now. A reading that is not after the last one fills nothing.
func (p *Shares) refill(s *SharesState, now int64) {
	for len(s.own) < len(p.floors) {
		s.own = append(s.own, 0)
	}
	if now <= s.last {
		return
	}
	s.common = max(s.common-p.inflow(s.own, now-s.last), 0)
	for i, f := range p.floors {
		s.own[i], _ = fill(s.own[i], f, now-s.last)
	}
	s.last = now
}

// inflow returns the refill of the common bucket in dt steps.
func (p *Shares) inflow(own []int64, dt int64) int64 {
	_, sum := fill(0, p.rest, dt)
	for i, f := range p.floors {
		_, spilled := fill(own[i], f, dt)
		sum = addSaturated(sum, spilled)
	}
	return sum
}

// fill returns the lack dt steps later, and the overflowing parts.
func fill(lack, rate, dt int64) (left, spilled int64) {
	hi, gain := bits.Mul64(uint64(dt), uint64(rate))
	if hi > 0 || gain > math.MaxInt64 {
		return 0, math.MaxInt64
	}
	return max(lack-int64(gain), 0), max(int64(gain)-lack, 0)
}

// available returns the parts that child has.
func (p *Shares) available(s *SharesState, child int) int64 {
	return p.depths[child] - s.own[child] + max(p.common-s.common, 0)
}

// most returns the most parts that child can have.
func (p *Shares) most(child int) int64 { return p.depths[child] + p.common }

// take charges parts to the bucket of child and the rest to the common one. It
// returns the payment of the first.
func (p *Shares) take(s *SharesState, child int, parts int64) (own int64) {
	own = min(parts, p.depths[child]-s.own[child])
	s.own[child] += own
	s.common += parts - own
	return own
}

// until returns after how many steps from s.last child has that many parts, never if it cannot.
func (p *Shares) until(s *SharesState, child int, parts int64) int64 {
	if parts > p.most(child) {
		return never
	}
	for dt := int64(0); ; {
		have, gain, next := p.outlook(s, child, dt)
		if have >= parts {
			return dt
		}
		if gain > 0 {
			next = min(next, dt+roundUp(parts-have, gain))
		}
		dt = next
	}
}

// outlook returns the parts that child has dt steps after s.last, its gain per step from then on,
// and the step at which the gain changes.
func (p *Shares) outlook(s *SharesState, child int, dt int64) (have, gain, next int64) {
	inflow, next := p.rest, int64(never)
	for i, f := range p.floors {
		lack, _ := fill(s.own[i], f, dt)
		if i == child {
			have = p.depths[i] - lack
		}
		switch {
		case lack == 0:
			inflow += f
			continue
		case i == child:
			gain = f
		}
		next = min(next, dt+roundUp(lack, f))
	}
	lack := max(s.common-p.inflow(s.own, dt), 0)
	have += max(p.common-lack, 0)
	switch {
	case inflow == 0:
	case lack > p.common: // a debt first
		next = min(next, dt+roundUp(lack-p.common, inflow))
	case lack > 0:
		gain += inflow
		next = min(next, dt+roundUp(lack, inflow))
	}
	return have, gain, next
}

// untilFull returns after how many steps from s.last all buckets are full.
func (p *Shares) untilFull(s *SharesState) (dt int64) {
	for i, lack := range s.own {
		if lack > 0 {
			dt = max(dt, roundUp(lack, p.floors[i]))
		}
	}
	return dt + roundUp(max(s.common-p.inflow(s.own, dt), 0), p.total())
}

// roundUp returns a/b, rounded up.
func roundUp(a, b int64) int64 { return (a + b - 1) / b }
