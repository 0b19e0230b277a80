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
		`leaky bucket: burst is 0`:                           second(algo.NewLeakyBucket(r, algo.Burst(0))),
		`leaky bucket: does not take the option MaxWait`:     second(algo.NewLeakyBucket(r, algo.MaxWait(1))),
		`leaky bucket: rate: count is 0`:                     second(algo.NewLeakyBucket(algo.PerSecond(0))),
		`pacer: slack is -1`:                                 second(algo.NewPacer(r, algo.Slack(-1))),
		`pacer: slack is 9223372036854775807: at 10/s`:       second(algo.NewPacer(r, algo.Slack(math.MaxInt64))),
		`pacer: max queue is -1`:                             second(algo.NewPacer(r, algo.MaxQueue(-1))),
		`pacer: max wait is -1ns`:                            second(algo.NewPacer(r, algo.MaxWait(-1))),
		`pacer: does not take the option Burst`:              second(algo.NewPacer(r, algo.Burst(1))),
		`pacer: rate: period is -1ns`:                        second(algo.NewPacer(algo.Per(1, -1))),
		`nginx: burst is -1`:                                 second(algo.NewNginx(r, algo.Burst(-1))),
		`nginx: burst is 9223372036854775807: at 10/s`:       second(algo.NewNginx(r, algo.Burst(math.MaxInt64))),
		`nginx: delay after is -2`:                           second(algo.NewNginx(r, algo.DelayAfter(-2))),
		`nginx: delay after is 2, and NoDelay`:               second(algo.NewNginx(r, algo.DelayAfter(2), algo.NoDelay())),
		`nginx: does not take the option MaxWait`:            second(algo.NewNginx(r, algo.MaxWait(1))),
		`smooth bursty: burst is -1`:                         second(algo.NewSmoothBursty(r, algo.Burst(-1))),
		`smooth bursty: max wait is -1s`:                     second(algo.NewSmoothBursty(r, algo.MaxWait(-s))),
		`smooth bursty: does not take the option ColdFactor`: second(algo.NewSmoothBursty(r, algo.ColdFactor(2))),
		`smooth warming up: cold factor is 1, want more`:     second(algo.NewSmoothWarmingUp(r, s, algo.ColdFactor(1))),
		`smooth warming up: cold factor is NaN`:              second(algo.NewSmoothWarmingUp(r, s, algo.ColdFactor(math.NaN()))),
		`smooth warming up: cold factor is +Inf`:             second(algo.NewSmoothWarmingUp(r, 0, algo.ColdFactor(math.Inf(1)))),
		`smooth warming up: warmup is -1s`:                   second(algo.NewSmoothWarmingUp(r, -s)),
		`smooth warming up: warmup is 8760h0m0s`:             second(algo.NewSmoothWarmingUp(r, 8760*time.Hour)),
		`smooth warming up: max wait is -1ns`:                second(algo.NewSmoothWarmingUp(r, s, algo.MaxWait(-1))),
		`smooth warming up: rate: count is -3`:               second(algo.NewSmoothWarmingUp(algo.PerSecond(-3), s)),
		`smooth warming up: does not take the option Burst`:  second(algo.NewSmoothWarmingUp(r, s, algo.Burst(3))),
		`srTCM: cir: rate: count is 0`:                       second(algo.NewSRTCM(algo.PerSecond(0), 1, 1)),
		`srTCM: cbs and ebs are both 0`:                      second(algo.NewSRTCM(r, 0, 0)),
		`srTCM: cbs is -1`:                                   second(algo.NewSRTCM(r, -1, 1)),
		`srTCM: ebs is -1`:                                   second(algo.NewSRTCM(r, 1, -1)),
		`srTCM: cbs is 9223372036854775807: too much`:        second(algo.NewSRTCM(r, math.MaxInt64, 1)),
		`srTCM: cbs is 100000: at 1/h`:                       second(algo.NewSRTCM(algo.PerHour(1), 100000, 1)),
		`srTCM: does not take the option Burst`:              second(algo.NewSRTCM(r, 1, 1, algo.Burst(1))),
		`srTCM: max keys is 0`:                               second(algo.NewSRTCM(r, 1, 1, algo.MaxKeys(0))),
		`trTCM: pir is 9/s, slower than cir, which is 10/s`:  second(algo.NewTRTCM(r, 1, algo.PerSecond(9), 1)),
		`trTCM: pir: rate: count is 0`:                       second(algo.NewTRTCM(r, 1, algo.PerSecond(0), 1)),
		`trTCM: cbs is 0`:                                    second(algo.NewTRTCM(r, 0, r, 1)),
		`trTCM: pbs is 0`:                                    second(algo.NewTRTCM(r, 1, r, 0)),
		`trTCM: pbs is -4`:                                   second(algo.NewTRTCM(r, 1, r, -4)),
		`RFC 4115: cbs and ebs are both 0`:                   second(algo.NewRFC4115(r, 0, r, 0)),
		`RFC 4115: eir: rate: count is 0`:                    second(algo.NewRFC4115(r, 1, algo.PerSecond(0), 1)),
		`RFC 4115: ebs is -1`:                                second(algo.NewRFC4115(r, 1, algo.PerSecond(1), -1)),
	} {
		require.ErrorContains(t, err, "algo: "+want)
	}
}

func second[T any](_ T, err error) error { return err }
