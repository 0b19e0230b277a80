package algo_test

import (
	"context"
	"fmt"
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
	"nginx":          func(opts ...algo.Option) error { return second(newNginx(perHour, opts...)) },
	"smooth bursty":  func(opts ...algo.Option) error { return second(newSmoothBursty(perHour, opts...)) },
	"fixed window":   func(opts ...algo.Option) error { return second(algo.NewFixedWindow(perHour, opts...)) },
	"sliding window": func(opts ...algo.Option) error { return second(algo.NewSlidingWindow(perHour, opts...)) },
	"sliding log":    func(opts ...algo.Option) error { return second(algo.NewSlidingLog(perHour, opts...)) },
	"strict":         func(opts ...algo.Option) error { return second(newStrict(perHour, opts...)) },
	"smooth warming up": func(opts ...algo.Option) error {
		return second(newSmoothWarmingUp(perHour, time.Minute, opts...))
	},
}

var perHour = algo.PerHour(5)

// Every constructor accepts its options, once each, and refuses all others by
// name, also if they are given as zero.
func TestOptionBelongs(t *testing.T) {
	all := []algo.Option{
		algo.Burst(0), algo.MaxWait(0), algo.MaxQueue(0), algo.Slack(0), algo.DelayAfter(0), algo.NoDelay(),
		algo.ColdFactor(2), algo.Cells(1), algo.Offset(0), algo.AlignedTo(time.Now()), algo.Spread(), algo.MaxKeys(1),
		algo.DenyNew(),
	}
	takes := map[string][]string{
		"token bucket": {"Burst", "MaxWait", "MaxKeys", "DenyNew"}, "leaky bucket": {"Burst", "MaxKeys", "DenyNew"},
		"pacer":         {"Slack", "MaxWait", "MaxQueue", "MaxKeys", "DenyNew"},
		"nginx":         {"Burst", "DelayAfter", "NoDelay", "MaxKeys", "DenyNew"},
		"smooth bursty": {"Burst", "MaxWait", "MaxKeys", "DenyNew"}, "strict": {"Burst", "MaxKeys", "DenyNew"},
		"smooth warming up": {"ColdFactor", "MaxWait", "MaxKeys", "DenyNew"},
		"fixed window":      {"Offset", "AlignedTo", "Zone", "StartDay", "Spread", "MaxKeys", "DenyNew"},
		"sliding window":    {"Cells", "MaxKeys", "DenyNew"}, "sliding log": {"MaxKeys", "DenyNew"},
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

// With MaxWait a limiter shapes: it admits requests that come too early, with
// a Delay.
func ExampleMaxWait() {
	l := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(1), algo.MaxWait(150*time.Millisecond)))
	for range 3 {
		lease, _ := l.Acquire(context.Background(), "", 1)
		fmt.Println(lease.Allowed, lease.Delay.Round(10*time.Millisecond))
	}
	// Output:
	// true 0s
	// true 100ms
	// false 0s
}

// The table has room for a hundred users. When it is full, a new user takes the
// place of one whose debt would be gone soonest.
func ExampleMaxKeys() {
	users := algo.Must(algo.NewTokenBucket(algo.PerHour(1), algo.MaxKeys(100)))
	for user := range 10_000 {
		users.Allow(fmt.Sprint("made-up-", user), 1)
	}
	fmt.Println(users.Stats().Live < 200, users.Stats().Overflowed > 9000)
	fmt.Println(users.Allow("ann", 1))
	// Output:
	// true true
	// true
}

// New users are denied while the table is full.
func ExampleDenyNew() {
	users := algo.Must(algo.NewTokenBucket(algo.PerHour(2), algo.MaxKeys(100), algo.DenyNew()))
	users.Allow("ann", 1)
	for user := range 10_000 {
		users.Allow(fmt.Sprint("made-up-", user), 1)
	}
	lease, _ := users.Acquire(context.Background(), "bob", 1)
	fmt.Println(users.Allow("ann", 1), lease.Allowed, lease.Reason)
	// Output: true false overload
}
