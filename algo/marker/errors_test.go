package marker_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/marker"
)

func TestErrors(t *testing.T) {
	r := algo.PerSecond(10)
	for want, err := range map[string]error{
		`srTCM: cir: rate: count is 0`:                      failure(marker.NewSRTCM(algo.PerSecond(0), 1, 1)),
		`srTCM: cbs and ebs are both 0`:                     failure(marker.NewSRTCM(r, 0, 0)),
		`srTCM: cbs is -1`:                                  failure(marker.NewSRTCM(r, -1, 1)),
		`srTCM: ebs is -1`:                                  failure(marker.NewSRTCM(r, 1, -1)),
		`srTCM: cbs is 9223372036854775807: too much`:       failure(marker.NewSRTCM(r, math.MaxInt64, 1)),
		`srTCM: cbs is 100000: at 1/h`:                      failure(marker.NewSRTCM(algo.PerHour(1), 100000, 1)),
		`srTCM: does not take the option Burst`:             failure(marker.NewSRTCM(r, 1, 1, algo.Burst(1))),
		`srTCM: max keys is 0`:                              failure(marker.NewSRTCM(r, 1, 1, algo.MaxKeys(0))),
		`trTCM: pir is 9/s, slower than cir, which is 10/s`: failure(marker.NewTRTCM(r, 1, algo.PerSecond(9), 1)),
		`trTCM: pir: rate: count is 0`:                      failure(marker.NewTRTCM(r, 1, algo.PerSecond(0), 1)),
		`trTCM: cbs is 0`:                                   failure(marker.NewTRTCM(r, 0, r, 1)),
		`trTCM: pbs is 0`:                                   failure(marker.NewTRTCM(r, 1, r, 0)),
		`trTCM: pbs is -4`:                                  failure(marker.NewTRTCM(r, 1, r, -4)),
		`RFC 4115: cbs and ebs are both 0`:                  failure(marker.NewRFC4115(r, 0, r, 0)),
		`RFC 4115: eir: rate: count is 0`:                   failure(marker.NewRFC4115(r, 1, algo.PerSecond(0), 1)),
		`RFC 4115: ebs is -1`:                               failure(marker.NewRFC4115(r, 1, algo.PerSecond(1), -1)),
	} {
		require.ErrorContains(t, err, "marker: "+want)
	}
}

func failure[T any](_ T, err error) error { return err }
