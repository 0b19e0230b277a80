package algo_test

import (
	"time"

	"github.com/sluice-go/sluice/algo"
)

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
