package serverwait_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/serverwait"
)

// The waits of the common shapes of fields.
func TestQuotaWait(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		fields []string // pairs
		failed bool
		want   time.Duration
	}{
		{nil, true, 0},
		{[]string{"X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1s"}, false, time.Second},
		{[]string{"X-Ratelimit-Remaining-Requests", "1", "X-Ratelimit-Reset-Requests", "1s"}, false, 0},
		{[]string{"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "20ms"}, false, 6 * time.Minute},
		{[]string{"Example-Ratelimit-Tokens-Remaining", "0", "Example-Ratelimit-Tokens-Reset", "2026-11-23T00:00:07Z"}, false, 7 * time.Second},
		{[]string{"Example-Ratelimit-Tokens-Remaining", "0", "Example-Ratelimit-Tokens-Reset", "2026-11-22T00:00:07Z"}, false, 0},
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1795392042"}, false, 42 * time.Second},
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1795392042500"}, false, 42500 * time.Millisecond},
		{[]string{"X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", "9"}, false, 9 * time.Second},
		{[]string{"X-Ratelimit-Remaining", "0.0", "X-Ratelimit-Reset", "0.25"}, false, time.Second / 4},
		{[]string{"X-Ratelimit-Remaining", "0"}, false, 0},
		{[]string{"X-Seats-Remaining", "0", "X-Seats-Reset", "9"}, false, 0},
		{[]string{"Retry-After-Ms", "120"}, true, 120 * time.Millisecond},
		{[]string{"x-ms-retry-after-ms", "120"}, true, 120 * time.Millisecond},
		{[]string{"Retry-After-Ms", "120"}, false, 0},
		{[]string{"Retry-After-Ms", "1e999"}, true, serverwait.Longest},
		{[]string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1e999"}, false, serverwait.Longest},
		{[]string{"X-Ratelimit-Remaining", "-1e999", "X-Ratelimit-Reset", "9"}, false, 9 * time.Second},
	} {
		fields := map[string][]string{}
		for i := 0; i < len(row.fields); i += 2 {
			fields[row.fields[i]] = []string{row.fields[i+1]}
		}
		require.Equal(t, row.want, serverwait.Quota(fields, row.failed, func() time.Time { return now }), "%v", row.fields)
	}
}

// TestS3_QuotaWait: no field makes a wait that is negative or longer than the longest.
func TestS3_QuotaWait(t *testing.T) {
	for _, value := range []string{"", "x", "-5", "NaN", "Inf", "-Inf", "1e300", "1e15", "99999999999999999999", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "-1h", "2540400h"} {
		for _, fields := range []map[string][]string{
			{"Retry-After-Ms": {value}}, {"Retry-After-Ms": nil},
			{"X-Ratelimit-Remaining": {value}, "X-Ratelimit-Reset": {"5"}}, {"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": nil},
			{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {value}},
		} {
			for _, now := range []time.Time{{}, time.Unix(1.8e9, 0), time.Unix(0, math.MaxInt64)} {
				d := serverwait.Quota(fields, true, func() time.Time { return now })
				require.True(t, d >= 0 && d <= serverwait.Longest, "%v: %v", fields, d)
			}
		}
	}
}
