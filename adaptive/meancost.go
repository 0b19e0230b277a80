package adaptive

import (
	"math"
	"sync"
	"sync/atomic"
)

// meanCostMemory is the number of successes over which the mean cost is smoothed.
const meanCostMemory = 256

// meanCost is the mean cost of work, weighted by its time: by Little's law the ratio
// of units to requests in flight. Rates count requests and limits units, so a strategy
// that computes one from the other converts with it. It is 1 until work has another cost.
type meanCost struct {
	used atomic.Bool

	mu          sync.Mutex
	units, time float64 // sums that forget: units x ns, and ns
}

// observe learns from a success. Work of cost 1 takes no lock while nothing else is seen.
func (c *meanCost) observe(units, rtt int64) {
	if units <= 1 && !c.used.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used.Store(true)
	c.units += float64(max(units, 1))*float64(rtt) - c.units/meanCostMemory
	c.time += float64(rtt) - c.time/meanCostMemory
}

func (c *meanCost) mean() float64 {
	if !c.used.Load() {
		return 1
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.units / c.time
}

// unitsOf is the number of units of that many requests, rounded up.
func (c *meanCost) unitsOf(requests float64) int64 {
	return int64(math.Ceil(min(requests*c.mean(), noLimit)))
}

// requestsOf is the number of requests of that many units.
func (c *meanCost) requestsOf(units int64) int64 { return int64(math.Round(float64(units) / c.mean())) }
