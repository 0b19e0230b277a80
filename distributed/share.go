package distributed

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// instances is the number of instances that share the limits, and the rank of
// this one, from 0; rank is -1 if it is unknown. assumed is set until the instance
// has been counted by the others.
type instances struct {
	count, rank int
	assumed     bool
}

// part is this instance's part of total. The parts of all instances add up to
// at most total, and exactly to it if the ranks are known. An instance that has not
// been counted has a part of at least one unit.
func (in instances) part(total int64) int64 {
	n := int64(in.count)
	part := total / n
	if in.rank >= 0 && int64(in.rank) < total%n {
		part++
	}
	if in.assumed && total > 0 {
		part = max(part, 1)
	}
	return part
}

// slower divides a rate without losing a fraction.
func slower(r algo.Rate, by int) algo.Rate {
	if r.Period <= math.MaxInt64/time.Duration(by) {
		r.Period *= time.Duration(by)
	} else {
		r.Period = math.MaxInt64 // which every limiter rejects
	}
	return r
}

// localOf returns the limiter of a share of part units that s describes: was,
// changed in use, or a new one. It returns nil if this instance has no share.
func localOf(s algo.Spec, part int64, was algo.Limiter) algo.Limiter {
	if part == 0 {
		return nil
	}
	if was != nil && s.Apply(was) == nil {
		return was
	}
	l, err := s.New()
	if err != nil {
		return nil
	}
	return l
}
