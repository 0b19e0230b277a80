package adaptive

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/keystore"
	"github.com/sluice-go/sluice/internal/wiring"
)

// WithFairShares divides the capacity between tenants while there is overload, so that a flood from one
// takes nothing from the others. The tenant of a request is its key; requests without a key are one
// tenant. weight gives a tenant its share in proportion to the others, .001 to 1000; a value that is no
// number above 0 counts as 1, and a nil weight gives all the same. It must be fast and must not block. If
// it panics, Acquire panics before it takes anything.
//
// Each tenant may use the lesser of its demand and its weighted max-min share. Use is counted in service:
// the time from admission to release, without waits for the client, times the units, also of work that
// fails. A request beyond its tenant's share is denied only in favor of tenants within theirs. A tenant
// that was idle, or is new, may first send 20 requests beyond its share. [WithPriorities] goes before
// shares.
//
// Shares are means over about a second. The limiter tracks the use of 400 000 tenants in at most 10 MiB;
// beyond that the one of 16 with the least use starts anew. Tenants are distinguished by hashes of 64
// bits.
//
// A caller that can choose its name has as many shares as names: the key must be an identity that the
// service has verified (docs/guides/fairness.md).
func WithFairShares(weight func(tenant string) float64) Option {
	return wiring.With("WithFairShares", weight)
}

const (
	shareMeans  = 1 << 14 // mean durations of requests
	shareMemory = 8       // requests, of such a mean
	shareBurst  = 20      // requests beyond the fair rate, from idle
	serviceUnit = 64      // ns
	mostService = 1 << 52 // ns, 52 days of one request: sums stay far from overflow
)

// shares divides the capacity between tenants: core-stateless fair queueing (Stoica,
// Shenker, Zhang, SIGCOMM 1998) with a virtual clock for each tenant in place of an
// estimate of its rate.
//
// Use is counted in service, the nanoseconds from admission to release, times the units.
// Virtual time passes at the fair rate, in service per time for the weight 1. The state
// of a tenant is the virtual time at which its use has drained.
type shares struct {
	weight func(tenant string) float64 // nil: 1
	usual  [shareMeans]atomic.Uint32   // service of a unit, smoothed, in serviceUnit, by the hash of the tenant
	clock  atomic.Pointer[fairClock]   // rate 0 before the first overload
	since  fairCounts                  // since the last turn
	ending sync.Mutex

	heaviest heaviest
}

// fairCounts sums up the service since the last turn.
type fairCounts struct {
	bound  atomic.Int64 // within the shares of tenants that use all of theirs
	spare  atomic.Int64 // beyond the share of a tenant, and admitted
	lacked atomic.Int64 // within the share of a tenant, and denied
}

func (f *fairCounts) add(c charge, service int64) {
	switch {
	case !c.within():
		f.spare.Add(service)
	case c.bound():
		f.bound.Add(service)
	}
}

func (f *fairCounts) take() (bound, spare, lacked float64) {
	return float64(f.bound.Swap(0)), float64(f.spare.Swap(0)), float64(f.lacked.Swap(0))
}

func newShares(weight func(string) float64) *shares {
	s := &shares{weight: weight, heaviest: heaviest{seed: maphash.MakeSeed()}}
	s.clock.Store(&fairClock{used: newUsed()})
	return s
}

// charge is the service charged for a request, packed into a word.
type charge struct {
	weight  float32 // of the tenant; 0: not charged, because its share is used
	service uint32  // expected, in serviceUnit; odd if the tenant uses all of its share
}

func (c charge) within() bool { return c.weight > 0 }

func (c charge) bound() bool { return c.service&1 == 1 }

// expected returns the service charged in advance.
func (c charge) expected() int64 { return int64(c.service) * serviceUnit }

// place returns the request's place within its class.
func (c charge) place() rank {
	switch {
	case !c.within():
		return 2
	case c.bound():
		return 1
	}
	return 0
}

func (c charge) pack() int64 { return int64(math.Float32bits(c.weight))<<32 | int64(c.service) }

func unpack(word int64) charge {
	return charge{math.Float32frombits(uint32(word>>32) &^ (1 << 31)), uint32(word)}
}

// serviceOf returns the service of n units that take as long as unit each.
func serviceOf(unit, n int64) int64 {
	return int64(min(float64(unit)*float64(n), mostService))
}

// charge charges the tenant for n units if they are within its share. It returns the tenant's use
// before, at most shareBurst requests, in virtual time. Without an estimate a unit takes mean.
func (s *shares) charge(tenant string, weight float64, n, at, inFlight, mean int64) (c charge, used float64) {
	clock := s.turn(at, inFlight)
	now := clock.now(at)
	clock.used.Update(tenant, now, func(state keystore.State[int64], _ int64) (int64, int64, bool) {
		unit := int64(s.usual[state.ID%shareMeans].Load()) * serviceUnit
		if unit == 0 {
			unit = max(mean, serviceUnit)
		}
		c.weight, c.service = 0, uint32(min(serviceOf(unit, n)/serviceUnit, math.MaxUint32))&^1
		burst := shareBurst * float64(unit) / weight
		owes := float64(max(state.State-now, 0))
		if used = min(owes, burst); owes > burst {
			return 0, 0, false
		}
		c.weight = float32(weight)
		if owes > burst/2 {
			c.service |= 1
		}
		next := max(state.State, now) + int64(float64(c.expected())/weight)
		return next, next, true
	})
	return c, used
}

func (s *shares) weightOf(tenant string) float64 {
	if s.weight == nil {
		return 1
	}
	return usableWeight(s.weight(tenant))
}

// usableWeight returns w, or 1 if w is no weight.
func usableWeight(w float64) float64 {
	if w > 0 && !math.IsInf(w, 1) {
		return min(max(w, minWeight), maxWeightOfTenant)
	}
	return 1
}

const minWeight, maxWeightOfTenant = 1e-3, 1e3

// finished charges the service of n units, which lasted for took, instead of the expected one.
func (s *shares) finished(tenant string, n, at, took int64, c charge) {
	service := serviceOf(took, n)
	by := 0.0
	if c.within() {
		by = float64(service-c.expected()) / float64(c.weight)
	}
	s.since.add(c, service)
	id := s.correct(tenant, at, by)
	usual := &s.usual[id%shareMeans]
	is, was := min(took/serviceUnit, math.MaxUint32), int64(usual.Load())
	if was == 0 {
		was = is
	}
	usual.Store(uint32(was + (is-was)/shareMemory))
}

// correct changes tenant's use and returns the tenant's hash.
func (s *shares) correct(tenant string, at int64, by float64) (id uint64) {
	clock := s.clock.Load()
	now := clock.now(at)
	clock.used.Update(tenant, now, func(state keystore.State[int64], _ int64) (int64, int64, bool) {
		id = state.ID
		next := max(state.State, now) + int64(by)
		return next, next, by != 0 && next > 0
	})
	return id
}

// turn adjusts the fair rate once per fairTurn and returns the virtual clock.
func (s *shares) turn(at, inFlight int64) *fairClock {
	clock := s.clock.Load()
	begun := clock.rate > 0
	if begun && at-clock.at < fairTurn {
		return clock
	}
	if !begun { // by Little's law the service in flight is the service per time
		clock = &fairClock{used: clock.used, at: at, base: 1, rate: float64(max(inFlight, 1))}
	}
	if !s.ending.TryLock() {
		return clock
	}
	defer s.ending.Unlock()
	if begun {
		bound, spare, lacked := s.since.take()
		clock = clock.next(at, bound, spare, lacked)
	}
	s.clock.Store(clock)
	return clock
}
