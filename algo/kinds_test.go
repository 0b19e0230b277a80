package algo_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// atOnce leaves the limits of which a new key may spend the whole count at once, and no more.
var atOnce = cases.Without{
	cases.Ahead:  "the first cost is admitted, whatever it is, and the second not",
	cases.Delays: "a unit that does not fit is admitted, and waits",
}

func made(text string, opts ...algo.Option) *algo.RateLimiter {
	return algo.Must(algo.Must(algo.Parse(text)).New(opts...))
}

// besides returns atOnce and more.
func besides(more cases.Without) cases.Without {
	all := maps.Clone(atOnce)
	maps.Copy(all, more)
	return all
}

// eachLimit runs check in a bubble for each limit.
func eachLimit(t *testing.T, texts []string, check func(t *testing.T, l *algo.RateLimiter), opts ...algo.Option) {
	t.Helper()
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, made(text, opts...)) })
		})
	}
}

// spendAll returns how many single units l admits at once.
func spendAll(l *algo.RateLimiter, key string) (n int64) {
	for l.Allow(key, 1) {
		n++
	}
	return n
}

// The algorithms of package classic, with options.

func newStrict(r algo.Rate, opts ...algo.Option) (*algo.RateLimiter, error) {
	return algo.Spec{Algorithm: "strict", Rate: r}.New(opts...)
}

func newNginx(r algo.Rate, opts ...algo.Option) (*algo.RateLimiter, error) {
	return algo.Spec{Algorithm: "nginx", Rate: r}.New(opts...)
}

func newSmoothBursty(r algo.Rate, opts ...algo.Option) (*algo.RateLimiter, error) {
	return algo.Spec{Algorithm: "smooth-bursty", Rate: r}.New(opts...)
}

func newSmoothWarmingUp(r algo.Rate, warmup time.Duration, opts ...algo.Option) (*algo.RateLimiter, error) {
	return algo.Spec{Algorithm: "smooth-warming-up", Rate: r, Warmup: warmup}.New(opts...)
}
