package algo_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestShapeErrors(t *testing.T) {
	r := algo.PerSecond(10)
	for want, err := range map[string]error{
		`leaky bucket: burst is 0`:                       second(algo.NewLeakyBucket(r, algo.Burst(0))),
		`pacer: slack is -1`:                             second(algo.NewPacer(r, algo.Slack(-1))),
		`pacer: slack is 9223372036854775807: at 10/s`:   second(algo.NewPacer(r, algo.Slack(math.MaxInt64))),
		`pacer: max queue is -1`:                         second(algo.NewPacer(r, algo.MaxQueue(-1))),
		`pacer: max wait is -1ns`:                        second(algo.NewPacer(r, algo.MaxWait(-1))),
		`nginx: burst is -1`:                             second(newNginx(r, algo.Burst(-1))),
		`nginx: burst is 9223372036854775807: at 10/s`:   second(newNginx(r, algo.Burst(math.MaxInt64))),
		`nginx: delay after is -2`:                       second(newNginx(r, algo.DelayAfter(-2))),
		`nginx: delay after is 2, and NoDelay`:           second(newNginx(r, algo.DelayAfter(2), algo.NoDelay())),
		`smooth bursty: burst is -1`:                     second(newSmoothBursty(r, algo.Burst(-1))),
		`smooth bursty: max wait is -1s`:                 second(newSmoothBursty(r, algo.MaxWait(-s))),
		`smooth warming up: cold factor is 1, want more`: second(newSmoothWarmingUp(r, s, algo.ColdFactor(1))),
		`smooth warming up: cold factor is NaN`:          second(newSmoothWarmingUp(r, s, algo.ColdFactor(math.NaN()))),
		`smooth warming up: cold factor is +Inf`:         second(newSmoothWarmingUp(r, 0, algo.ColdFactor(math.Inf(1)))),
		`smooth warming up: warmup is -1s`:               second(newSmoothWarmingUp(r, -s)),
		`smooth warming up: warmup is 8760h0m0s`:         second(newSmoothWarmingUp(r, 8760*time.Hour)),
		`smooth warming up: max wait is -1ns`:            second(newSmoothWarmingUp(r, s, algo.MaxWait(-1))),
	} {
		require.ErrorContains(t, err, "algo: "+want)
	}
}

func second[T any](_ T, err error) error { return err }
