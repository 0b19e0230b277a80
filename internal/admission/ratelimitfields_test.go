package admission_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

func number(n int64) string { return string(admission.AppendNumber(nil, n)) }

// TestLimitItemIsWhatAppendLimitAppends: the item that is rendered beforehand is sent
// only if its values are current.
func TestLimitItemIsWhatAppendLimitAppends(t *testing.T) {
	for _, rate := range []algo.Rate{algo.PerSecond(100), algo.PerMinute(7), algo.PerHour(1), algo.PerDay(2)} {
		f := admission.Fields{Limiter: algo.Must(algo.NewTokenBucket(rate))}
		for _, remaining := range []int64{rate.Count + 1, rate.Count, rate.Count - 1, rate.Count - 2, 0} {
			for _, after := range []time.Duration{0, 1, time.Second, time.Minute, rate.Period / time.Duration(rate.Count), rate.Period, algo.Forever} {
				for _, retry := range []time.Duration{0, time.Second, algo.Forever} {
					d := algo.Decision{Allowed: retry == 0, Limit: rate.Count, Remaining: max(remaining, 0), NextAfter: after, RetryAfter: retry}
					p := f.PolicyItem(d.Limit)
					require.Equal(t, string(f.AppendLimit(nil, &d, p)), f.LimitItem(&d, p), "%v %+v", rate, d)
					for _, reset := range []int64{0, admission.Seconds(after), 60} {
						want := [3]string{number(d.Limit), number(min(d.Remaining, d.Limit)), number(reset)}
						require.Equal(t, want, f.LegacyItems(&d, reset), "%v %+v", rate, d)
					}
				}
			}
		}
	}
}
