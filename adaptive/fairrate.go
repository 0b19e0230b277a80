package adaptive

import (
	"math"
	"time"

	"github.com/sluice-go/sluice/internal/keystore"
)

const (
	fairTurn    = int64(100 * time.Millisecond) // between changes of the fair rate
	fairStep    = 1.4                           // by which it changes at most in a turn
	fairLeast   = 1e-9
	fairMemory  = float64(time.Second) / 2 // ns, memory of the means
	fairMost    = 1e6
	fairLongest = int64(1) << 61 // virtual time, far from overflow
	fairTenants = 400_000        // whose use is kept, in 10 MiB
)

// fairClock is a virtual time that was base at the instant at and advances at rate: the service per
// time that a tenant of weight 1 may use.
//
// Long before it overflows it starts again from zero, without any debts: with many requests in
// flight and small weights that takes days.
type fairClock struct {
	used     *keystore.Store[int64, struct{}] // of this clock
	at, base int64
	rate     float64

	// Decaying sums: time, the integral of the rate, and fairCounts.
	time, area           float64
	bound, spare, lacked float64
}

// mean returns the mean rate of the last second.
func (c *fairClock) mean() float64 {
	if c.time == 0 {
		return c.rate
	}
	return c.area / c.time
}

func (c *fairClock) now(at int64) int64 {
	return min(c.base+int64(min(float64(max(at-c.at, 0))*c.rate, float64(fairLongest))), fairLongest)
}

// next returns the clock that applies from the instant at.
//
// At the rate r the tenants' shares are F(r), the sum of min(demand, r*weight), which should equal
// the capacity but exceeds it by lacked - spare. Where F rises, it rises with the use of the
// tenants that are bound by r, so Newton's step is r * (1 - (lacked-spare)/bound). All are means of
// the last second: a tenant uses its share in bursts. If no tenant is bound, the rate stops where
// one could use all of spare: above that, the next tenant would take the others' share until the
// rate falls.
func (c *fairClock) next(at int64, bound, spare, lacked float64) *fairClock {
	dt := float64(at - c.at)
	keep := math.Exp(-dt / fairMemory)
	n := &fairClock{
		used: c.used, at: at, base: c.now(at),
		time: keep*c.time + dt, area: keep*c.area + c.rate*dt,
		bound: keep*c.bound + bound, spare: keep*c.spare + spare, lacked: keep*c.lacked + lacked,
	}
	if n.base > fairLongest/2 {
		n.used, n.base = newUsed(), 1
	}
	rate := c.rate
	switch {
	case n.bound > 0:
		rate = n.mean() * max(1-(n.lacked-n.spare)/n.bound, 0)
	case n.lacked > n.spare:
		rate = 0
	case n.spare > n.lacked:
		rate = max(rate, (n.spare-n.lacked)/n.time)
	}
	n.rate = min(max(rate, c.rate/fairStep, fairLeast), c.rate*fairStep, fairMost)
	return n
}

// newUsed returns the table of tenants: each value is the virtual time at which a tenant's use has
// drained.
func newUsed() *keystore.Store[int64, struct{}] {
	used := new(keystore.Store[int64, struct{}])
	used.Init(keystore.Config{MaxKeys: fairTenants, Evict: true}, nil)
	// The values are virtual times. A clock that never reaches them keeps each tenant until a new one
	// needs its slot and it has the least use of 16.
	used.Clock.Start = time.Now().Add(4 * 365 * 24 * time.Hour)
	return used
}
