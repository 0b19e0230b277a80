package admission_test

import (
	"regexp"
	"strconv"
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
		f := admission.NewFields("p", algo.Must(algo.NewTokenBucket(rate)))
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

// The rate that a client computes from the fields is within 10 % of the true one, or they state
// none: of every rate from 1 a day to 1e6 a second, with a burst of 1 to 1e6.
func TestPolicyItemStatesTheRate(t *testing.T) {
	ladder := []int64{1, 2, 3, 5, 7, 13, 50, 99, 1000, 12_345, 1_000_000}
	stated := regexp.MustCompile(`^"p";q=(\d+)(?:;w=(\d+))?$`)
	tried, silent := 0, 0
	for _, period := range []time.Duration{time.Second, 7 * time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		for _, count := range ladder {
			for _, burst := range ladder {
				if float64(burst)/float64(count)*period.Hours() > 365*24 {
					continue // no limit takes longer to fill
				}
				l, err := algo.NewTokenBucket(algo.Per(count, period), algo.Burst(burst))
				require.NoError(t, err)
				tried++
				f := admission.NewFields("p", l)
				m := stated.FindStringSubmatch(f.PolicyItem(burst).Text)
				require.NotNil(t, m)
				if m[2] == "" {
					silent++
					continue
				}
				q, w := atof(t, m[1]), atof(t, m[2])
				require.InEpsilon(t, float64(count)/period.Seconds(), q/w, .1, "%d per %v, burst %d: %s", count, period, burst, m[0])
				require.GreaterOrEqual(t, q, float64(burst), "more can come at once than the quota")
			}
		}
	}
	require.Greater(t, tried, 400)
	require.Less(t, silent, tried/20)
	fast := algo.Must(algo.NewTokenBucket(algo.PerSecond(50), algo.Burst(5)))
	require.Equal(t, `"p";q=50;w=1`, admission.NewFields("p", fast).PolicyItem(5).Text)
}

func atof(t *testing.T, s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return v
}
