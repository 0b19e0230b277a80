package algo_test

import (
	"testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/algotest"
)

func TestTokenBucketConformance(t *testing.T) {
	algotest.Run(t, func(r algo.Rate, opts ...algo.Option) (algo.Limiter, error) {
		return algo.NewTokenBucket(r, opts...)
	}, algotest.Bound{Units: algotest.BurstPlusRate})
}
