// Package rate has the names of golang.org/x/time/rate over the token bucket of package algo: in a
// program that uses it, one import changes. TestSuitesOfTheOriginals runs its tests.
//
// # Differences
//
//   - A bucket is full after at most 365 days, and no reservation is further ahead: a slower limit,
//     0 too, counts as the burst in 365 days. A limit above 1e9 a second, except [Inf], counts as 1e9.
//   - Time is counted in 1/64 ns, and the time of a token rounded up: the limit is never exceeded, and
//     at most 1.6 % slower at 1e9/s, 1e-6 below 1e5/s. A Delay is rounded up to a nanosecond.
//
// New code begins with package algo, whose limiters have any number of keys.
package rate

import (
	"math"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/decide"
)

// Limit is events per second; 0 allows the burst and then nothing.
type Limit float64

// Inf allows all events, even with a burst of 0.
const Inf = Limit(math.MaxFloat64)

// Every is one event in each interval; Inf for an interval of 0 or less.
func Every(interval time.Duration) Limit {
	if interval <= 0 {
		return Inf
	}
	return Limit(1 / interval.Seconds())
}

// Limiter is a token bucket of burst tokens that fills at a limit. The zero value denies
// every event. It is safe for concurrent use.
type Limiter struct {
	mu     sync.Mutex
	limit  Limit
	burst  int
	bucket *decide.GCRA // of both; nil in a zero value
	tokens int64        // at last, in ticks of the time that they take; below 0 if they are reserved
	last   time.Time
	// lastEvent is the latest time at which reserved events may happen.
	lastEvent time.Time
}

// NewLimiter makes a full bucket of b tokens.
func NewLimiter(r Limit, b int) *Limiter {
	lim := new(Limiter)
	lim.set(r, b, float64(b))
	return lim
}

// set makes the bucket of a limit, with so many tokens.
func (lim *Limiter) set(limit Limit, burst int, tokens float64) {
	lim.limit, lim.burst, lim.bucket = limit, burst, bucketOf(limit, burst)
	lim.tokens = int64(tokens * lim.emission())
}

// bucketOf is the bucket of a limit within the engine's bounds: at most a token a nanosecond, and
// full after at most 365 days.
func bucketOf(limit Limit, burst int) *decide.GCRA {
	depth := min(max(int64(burst), 1), int64(decide.MaxSpan))
	r := algo.Per(depth, decide.MaxSpan)
	if float64(limit)*decide.MaxSpan.Seconds() > float64(depth) {
		r = algo.PerSecondFloat(min(float64(limit), 1e9))
	}
	rate := decide.Rate{Count: r.Count, Period: r.Period, Resolution: decide.Nanoseconds}
	return algo.Must(decide.NewGCRA(rate, depth, decide.MaxSpan))
}

// emission is the time of one token, in ticks.
func (lim *Limiter) emission() float64 { return float64(lim.bucket.Params().Emission) }

// debt is what the bucket lacks at t, in ticks. A clock that goes back adds nothing.
func (lim *Limiter) debt(t time.Time) int64 {
	if lim.bucket == nil {
		lim.bucket = bucketOf(lim.limit, lim.burst)
	}
	elapsed := min(max(t.Sub(lim.last), 0), decide.MaxSpan)
	return max(lim.bucket.Params().Depth-lim.tokens-decide.Nanoseconds.Ticks(elapsed), 0)
}

// Limit returns the limit.
func (lim *Limiter) Limit() Limit {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	return lim.limit
}

// Burst returns the size of the bucket.
func (lim *Limiter) Burst() int {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	return lim.burst
}

// SetLimit is SetLimitAt(time.Now(), limit).
func (lim *Limiter) SetLimit(limit Limit) { lim.SetLimitAt(time.Now(), limit) }

// SetLimitAt sets the limit; the tokens at t stay.
func (lim *Limiter) SetLimitAt(t time.Time, limit Limit) {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	tokens := lim.tokensAt(t)
	lim.last = t
	lim.set(limit, lim.burst, tokens)
}

// SetBurst is SetBurstAt(time.Now(), burst).
func (lim *Limiter) SetBurst(burst int) { lim.SetBurstAt(time.Now(), burst) }

// SetBurstAt sets the size of the bucket; the tokens at t stay.
func (lim *Limiter) SetBurstAt(t time.Time, burst int) {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	tokens := lim.tokensAt(t)
	lim.last = t
	lim.set(lim.limit, burst, tokens)
}

// Tokens is TokensAt now.
func (lim *Limiter) Tokens() float64 { return lim.TokensAt(time.Now()) }

// TokensAt returns the tokens at t; below 0 they are reserved.
func (lim *Limiter) TokensAt(t time.Time) float64 {
	lim.mu.Lock()
	defer lim.mu.Unlock()
	return lim.tokensAt(t)
}

func (lim *Limiter) tokensAt(t time.Time) float64 {
	debt := lim.debt(t)
	tokens := float64(lim.bucket.Params().Depth-debt) / lim.emission()
	return min(tokens, float64(lim.burst))
}

// Allow is AllowN(time.Now(), 1).
func (lim *Limiter) Allow() bool { return lim.AllowN(time.Now(), 1) }

// AllowN takes n tokens if they are there at t.
func (lim *Limiter) AllowN(t time.Time, n int) bool { return lim.reserveN(t, n, 0).ok }
