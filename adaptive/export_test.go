package adaptive

import (
	"math"

	"github.com/sluice-go/sluice/internal/machine"
	"github.com/sluice-go/sluice/internal/wiring"
)

// WithMachine runs a limiter or a strategy on a machine of the test.
var WithMachine = wiring.OnMachine

// Sojourn is the half of Default for dependencies: the other one reads the machine that runs the test.
func Sojourn() Strategy {
	return newSojourn(machine.Real{}, defaultTarget.Seconds(), func() bool { return false }, func(State) {})
}

// Remembered is the number of keys in memory.
func Remembered(k *KeyedLimiter) (n int) {
	for i := range k.shards {
		k.shards[i].mu.Lock()
		n += len(k.shards[i].counts)
		k.shards[i].mu.Unlock()
	}
	return n
}

// Check is the error of a strategy that New would report.
func Check(s Strategy) error { return wiring.Check(s) }

// Strain begins an overload of l that does not end.
func Strain(l *Limiter) { l.order.until.Store(math.MaxInt64) }

// UsableWeight is the weight of a tenant.
var UsableWeight = usableWeight

// FairRates is the fair rate after each turn of 100 ms, of tenants with the demands of
// one weight, where as much is served as capacity.
func FairRates(first, capacity float64, demands []float64, turns int) (rates []float64) {
	c := &fairClock{base: 1, rate: first}
	for range turns {
		var bound, light, spare, lacked float64
		for _, d := range demands {
			if d > c.rate {
				bound += c.rate
			} else {
				light += d
			}
		}
		if more := bound + light - capacity; more > 0 {
			lacked = more
		} else {
			spare = -more
		}
		turn := float64(fairTurn)
		c = c.next(c.at+fairTurn, bound*turn, spare*turn, lacked*turn)
		rates = append(rates, c.rate)
	}
	return rates
}

// Used is the number of tenants whose use is kept.
func Used(l *Limiter) (tenants int) {
	return l.order.shares.clock.Load().used.Len(func(uint64) int64 { return 0 })
}

// AgeShares moves the virtual clock of l to its end, as long overloads do.
func AgeShares(l *Limiter) {
	c := *l.order.shares.clock.Load()
	c.base = fairLongest
	l.order.shares.clock.Store(&c)
}
