package distributed

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// instances is how many of them share the limits, and which one this is, from
// 0; rank is -1 where that is not known.
type instances struct{ count, rank int }

// part is this instance's part of total. The parts of all instances add up to
// total at most, and exactly if the ranks are known.
func (in instances) part(total int64) int64 {
	n := int64(in.count)
	part := total / n
	if in.rank >= 0 && int64(in.rank) < total%n {
		part++
	}
	return part
}

// allowance is what one instance may spend while Redis is away, as a token
// bucket in this process.
type allowance struct {
	rate  algo.Rate
	burst int64
	wait  time.Duration
}

// share: one part of the burst, and the rate divided by the instances. False
// if nothing is left for this instance: fewer units than instances.
func (g *gcra) share(in instances) (allowance, bool) {
	a := allowance{slower(g.rate, in.count), in.part(g.burst), micros(g.wait)}
	return a, a.burst > 0
}

// slower divides a rate without losing a fraction.
func slower(r algo.Rate, by int) algo.Rate {
	if r.Period <= math.MaxInt64/time.Duration(by) {
		r.Period *= time.Duration(by)
	} else {
		r.Period = math.MaxInt64 // more than any limiter accepts
	}
	return r
}
