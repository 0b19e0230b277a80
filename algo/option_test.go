package algo_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// constructors are all functions that take options.
var constructors = map[string]func(...algo.Option) error{
	"token bucket":   func(opts ...algo.Option) error { return second(algo.NewTokenBucket(perHour, opts...)) },
	"leaky bucket":   func(opts ...algo.Option) error { return second(algo.NewLeakyBucket(perHour, opts...)) },
	"pacer":          func(opts ...algo.Option) error { return second(algo.NewPacer(perHour, opts...)) },
	"nginx":          func(opts ...algo.Option) error { return second(algo.NewNginx(perHour, opts...)) },
	"smooth bursty":  func(opts ...algo.Option) error { return second(algo.NewSmoothBursty(perHour, opts...)) },
	"fixed window":   func(opts ...algo.Option) error { return second(algo.NewFixedWindow(perHour, opts...)) },
	"sliding window": func(opts ...algo.Option) error { return second(algo.NewSlidingWindow(perHour, opts...)) },
	"sliding log":    func(opts ...algo.Option) error { return second(algo.NewSlidingLog(perHour, opts...)) },
	"strict":         func(opts ...algo.Option) error { return second(algo.NewStrict(perHour, opts...)) },
	"srTCM":          func(opts ...algo.Option) error { return second(algo.NewSRTCM(perHour, 1, 1, opts...)) },
	"trTCM":          func(opts ...algo.Option) error { return second(algo.NewTRTCM(perHour, 1, perHour, 1, opts...)) },
	"RFC 4115":       func(opts ...algo.Option) error { return second(algo.NewRFC4115(perHour, 1, perHour, 1, opts...)) },
	"smooth warming up": func(opts ...algo.Option) error {
		return second(algo.NewSmoothWarmingUp(perHour, time.Minute, opts...))
	},
	"escalate": func(opts ...algo.Option) error {
		return second(algo.NewBan(algo.Unlimited(), perHour, time.Minute, time.Hour, opts...))
	},
}

var perHour = algo.PerHour(5)

// Every constructor accepts its options, once each, and refuses all others by
// name, also if they are given as zero.
func TestOptionBelongs(t *testing.T) {
	all := []algo.Option{
		algo.Burst(0), algo.MaxWait(0), algo.MaxQueue(0), algo.Slack(0), algo.DelayAfter(0), algo.NoDelay(),
		algo.ColdFactor(2), algo.Cells(1), algo.Offset(0), algo.AlignedTo(time.Now()), algo.Spread(), algo.MaxKeys(1),
		algo.OnFull(algo.Overflow),
	}
	takes := map[string][]string{
		"token bucket": {"Burst", "MaxWait", "MaxKeys", "OnFull"}, "leaky bucket": {"Burst", "MaxKeys", "OnFull"},
		"pacer":         {"Slack", "MaxWait", "MaxQueue", "MaxKeys", "OnFull"},
		"nginx":         {"Burst", "DelayAfter", "NoDelay", "MaxKeys", "OnFull"},
		"smooth bursty": {"Burst", "MaxWait", "MaxKeys", "OnFull"}, "strict": {"Burst", "MaxKeys", "OnFull"},
		"smooth warming up": {"ColdFactor", "MaxWait", "MaxKeys", "OnFull"},
		"fixed window":      {"Offset", "AlignedTo", "Spread", "MaxKeys", "OnFull"},
		"sliding window":    {"Cells", "MaxKeys", "OnFull"}, "sliding log": {"MaxKeys", "OnFull"},
		"srTCM": {"MaxKeys", "OnFull"}, "trTCM": {"MaxKeys", "OnFull"}, "RFC 4115": {"MaxKeys", "OnFull"},
		"escalate": {"MaxKeys"},
	}
	for name, construct := range constructors {
		for _, o := range all {
			err := construct(o)
			if belongs := slices.Contains(takes[name], o.String()); belongs {
				if err != nil {
					require.NotContains(t, err.Error(), "does not take", name)
				}
				require.EqualError(t, construct(o, o), "algo: "+name+": duplicate option "+o.String())
				continue
			}
			require.ErrorContains(t, err, "algo: "+name+": does not take the option "+o.String()+", only ")
		}
	}
}
