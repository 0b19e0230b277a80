package algo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

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
		"token-bucket": {"Burst", "MaxWait", "MaxKeys", "DenyNew"}, "leaky-bucket": {"Burst", "MaxKeys", "DenyNew"},
		"pacer":         {"Slack", "MaxWait", "MaxQueue", "MaxKeys", "DenyNew"},
		"nginx":         {"Burst", "DelayAfter", "NoDelay", "MaxKeys", "DenyNew"},
		"smooth-bursty": {"Burst", "MaxWait", "MaxKeys", "DenyNew"}, "strict": {"Burst", "MaxKeys", "DenyNew"},
		"smooth-warming-up": {"ColdFactor", "MaxWait", "MaxKeys", "DenyNew"},
		"fixed-window":      {"Offset", "AlignedTo", "Zone", "StartDay", "Spread", "MaxKeys", "DenyNew"},
		"sliding-window":    {"Cells", "MaxKeys", "DenyNew"}, "sliding-log": {"MaxKeys", "DenyNew"},
	}
	for _, algorithm := range cases.Algorithms() {
		require.Contains(t, takes, algorithm, "add its options above, as its page has them")
		name := strings.ReplaceAll(algorithm, "-", " ")
		construct := func(opts ...algo.Option) error {
			_, err := algo.Spec{Algorithm: algorithm, Rate: perHour}.New(opts...)
			return err
		}
		for _, o := range all {
			err := construct(o)
			if belongs := slices.Contains(takes[algorithm], o.String()); belongs {
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
