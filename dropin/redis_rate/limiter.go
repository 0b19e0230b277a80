// Package redis_rate has the names of github.com/go-redis/redis_rate/v10 over package distributed:
// in a program that uses it, one import changes. TestSuitesOfTheOriginals runs its tests.
//
// # Differences
//
//   - No failure of Redis is an error: while it is away, the instance decides with its share of the
//     limit, or as an option of [NewLimiter] says. A Limiter works in the background until Close.
//   - Each Limit counts the events of a key by itself, under a key of Redis of its own, and Reset is
//     about those that this Limiter has decided about. A Limit takes memory: use dozens, not one for
//     each key.
//   - The client is a redis.UniversalClient. A negative number of events and limits that
//     distributed does not take, above 1e6 a second for example, are errors.
//
// New code begins with package distributed.
package redis_rate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/distributed"
)

// Limit is Rate events in each Period, at most Burst at once.
type Limit struct {
	Rate   int
	Burst  int
	Period time.Duration
}

// PerSecond is rate events a second, which may come at once.
func PerSecond(rate int) Limit { return Limit{rate, rate, time.Second} }

// PerMinute is rate events a minute, which may come at once.
func PerMinute(rate int) Limit { return Limit{rate, rate, time.Minute} }

// PerHour is rate events an hour, which may come at once.
func PerHour(rate int) Limit { return Limit{rate, rate, time.Hour} }

var units = map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}

// String is such as "10 req/s (burst 20)".
func (l Limit) String() string {
	unit := units[l.Period]
	if unit == "" {
		unit = l.Period.String()
	}
	return fmt.Sprintf("%d req/%s (burst %d)", l.Rate, unit, l.Burst)
}

// IsZero reports whether l is the zero Limit.
func (l Limit) IsZero() bool { return l == Limit{} }

// Result is an answer.
type Result struct {
	Limit      Limit
	Allowed    int           // events that may happen now
	Remaining  int           // that would be allowed now
	RetryAfter time.Duration // after which the denied events fit; -1 if they are allowed
	ResetAfter time.Duration // after which the whole burst is there
}

// Limiter decides on Redis. It is safe for concurrent use.
type Limiter struct {
	store  *distributed.Store
	mu     *sync.Mutex
	limits map[Limit]*distributed.Limiter
}

// NewLimiter makes a limiter with the options of [distributed.New], and panics at its errors.
func NewLimiter(client redis.UniversalClient, opts ...distributed.Option) *Limiter {
	return &Limiter{algo.Must(distributed.New(client, opts...)), new(sync.Mutex), map[Limit]*distributed.Limiter{}}
}

// Close ends the work in the background; see [distributed.Store.Close].
func (l *Limiter) Close() error { return l.store.Close() }

// of returns the limiter of a limit.
func (l Limiter) of(limit Limit) (lim *distributed.Limiter, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lim = l.limits[limit]; lim != nil {
		return lim, nil
	}
	name := fmt.Sprintf("%d-%d-%d", limit.Rate, limit.Period, limit.Burst)
	if lim, err = l.store.TokenBucket(name, algo.Per(int64(limit.Rate), limit.Period), algo.Burst(int64(limit.Burst))); err == nil {
		l.limits[limit] = lim
	}
	return lim, err
}

// Allow is AllowN of one event.
func (l Limiter) Allow(ctx context.Context, key string, limit Limit) (*Result, error) {
	return l.AllowN(ctx, key, limit, 1)
}

// AllowN allows n events of key or none; with 0 it reports the state.
func (l Limiter) AllowN(ctx context.Context, key string, limit Limit, n int) (*Result, error) {
	lim, err := l.of(limit)
	if err != nil {
		return nil, err
	}
	lease, err := lim.Acquire(ctx, key, int64(n))
	d := lease.Decision
	if d.Reason == algo.Never { // when the burst would be there, if it were larger
		d.RetryAfter = d.ResetAfter + time.Duration(n-limit.Burst)*limit.Period/time.Duration(limit.Rate)
	}
	return result(limit, d, n, err)
}

// AllowAtMost allows as many events of key as fit now, up to n.
func (l Limiter) AllowAtMost(ctx context.Context, key string, limit Limit, n int) (*Result, error) {
	if n == 0 {
		return l.AllowN(ctx, key, limit, 0)
	}
	lim, err := l.of(limit)
	if err != nil {
		return nil, err
	}
	lease, units, err := meter.AtMost(ctx, lim, key, int64(n))
	d := lease.Decision
	if d.NextAfter > 0 {
		d.RetryAfter = d.NextAfter
	}
	return result(limit, d, int(units), err)
}

func result(limit Limit, d algo.Decision, n int, err error) (*Result, error) {
	switch {
	case err != nil:
		return nil, err
	case d.Allowed:
		d.RetryAfter = -1
	default:
		n, d.Remaining = 0, 0
	}
	return &Result{limit, n, int(d.Remaining), d.RetryAfter, d.ResetAfter}, nil
}

// Reset forgets the events of key under all limits that l has decided about.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	l.mu.Lock()
	limits := slices.Collect(maps.Values(l.limits))
	l.mu.Unlock()
	var errs []error
	for _, lim := range limits {
		errs = append(errs, lim.Reset(ctx, key))
	}
	return errors.Join(errs...)
}
