package algo_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// A bucket for the service, and one for each of its calls below it.
func ExampleAcquireAll() {
	service := algo.Must(algo.NewTokenBucket(algo.PerHour(3)))
	calls := algo.Must(algo.NewTokenBucket(algo.PerHour(2)))
	ctx := context.Background()

	for _, call := range []string{"list", "list", "list", "get", "get"} {
		lease, err := algo.AcquireAll(ctx,
			algo.Request{Limiter: service, N: 1},
			algo.Request{Limiter: calls, Key: call, N: 1})
		if err != nil {
			fmt.Println(err)
			return
		}
		parts := lease.Parts()
		fmt.Printf("%-4s %-5t service %d left, call %d left\n", call, lease.Allowed, parts[0].Remaining, parts[1].Remaining)
		lease.Release(algo.Succeeded)
	}
	// Output:
	// list true  service 2 left, call 1 left
	// list true  service 1 left, call 0 left
	// list false service 1 left, call 0 left
	// get  true  service 0 left, call 1 left
	// get  false service 0 left, call 1 left
}

func ExampleAll() {
	limiter := algo.All(
		algo.Must(algo.NewTokenBucket(algo.PerSecond(10))),
		algo.Must(algo.NewTokenBucket(algo.PerHour(1000))),
	)
	lease, _ := limiter.Acquire(context.Background(), "alice", 4)
	fmt.Println(lease.Allowed, lease.Remaining, "of", lease.Limit)
	for _, part := range lease.Parts() {
		fmt.Println(part.Remaining, "of", part.Limit)
	}
	lease.Release(algo.Succeeded)
	// Output:
	// true 6 of 10
	// 6 of 10
	// 996 of 1000
}

func ExampleLease_Parts() {
	second := algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
	day := algo.Must(algo.NewTokenBucket(algo.PerDay(12)))
	both := algo.All(second, day)
	lease, _ := both.Acquire(context.Background(), "alice", 10)
	lease.Release(algo.Succeeded)

	lease, _ = both.Acquire(context.Background(), "alice", 9)
	fmt.Println(lease.Allowed, lease.Reason)
	for i, part := range lease.Parts() {
		fmt.Println(i, part.Allowed, part.RetryAfter.Round(100*time.Millisecond))
	}
	// Output:
	// false quota
	// 0 false 900ms
	// 1 false 14h0m0s
}

// A new limit, tried on live traffic.
func ExampleShadow() {
	limiter := algo.Shadow(algo.Must(algo.NewTokenBucket(algo.PerHour(1))))
	for range 2 {
		lease, _ := limiter.Acquire(context.Background(), "alice", 1)
		fmt.Println(lease.Allowed, lease.Source, lease.Reason, lease.RetryAfter.Round(time.Minute))
		lease.Release(algo.Succeeded)
	}
	// Output:
	// true local admitted 0s
	// true shadowed quota 1h0m0s
}

func ExampleSwitch() {
	limiter := algo.NewSwitch(algo.Must(algo.NewTokenBucket(algo.PerHour(1))))
	ask := func() {
		lease, _ := limiter.Acquire(context.Background(), "alice", 1)
		fmt.Println(lease.Allowed, lease.Source)
		lease.Release(algo.Succeeded)
	}
	ask()
	ask()
	limiter.Off()
	ask()
	limiter.On()
	ask()
	// Output:
	// true local
	// false local
	// true off
	// false local
}

// Tiers by the plan that the key begins with.
func ExampleByKey() {
	free := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	paid := algo.Must(algo.NewTokenBucket(algo.PerHour(1000)))
	limiter := algo.ByKey(func(_ context.Context, key string) algo.Limiter {
		if strings.HasPrefix(key, "paid:") {
			return paid
		}
		return free
	})
	for _, key := range []string{"paid:alice", "bob"} {
		lease, _ := limiter.Acquire(context.Background(), key, 1)
		fmt.Println(key, lease.Limit)
		lease.Release(algo.Succeeded)
	}
	// Output:
	// paid:alice 1000
	// bob 10
}

func ExampleOverrides() {
	standard := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
	partner := algo.Must(algo.NewTokenBucket(algo.PerHour(5000)))
	choice, err := algo.NewOverrides(algo.Choices{
		Exact:   map[string]algo.Limiter{"monitoring": algo.Unlimited()},
		Prefix:  map[string]algo.Limiter{"partner-": partner},
		Default: standard,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := algo.ByKey(choice.Choose)
	ask := func(key string) {
		lease, _ := limiter.Acquire(context.Background(), key, 1)
		fmt.Println(key, lease.Limit, lease.Source)
		lease.Release(algo.Succeeded)
	}
	ask("monitoring")
	ask("partner-7")
	ask("alice")

	// At run time, for all later requests.
	err = choice.Set(algo.Choices{Exact: map[string]algo.Limiter{"alice": partner}, Default: standard})
	ask("alice")
	fmt.Println(err)
	// Output:
	// monitoring 0 off
	// partner-7 5000 local
	// alice 100 local
	// alice 5000 local
	// <nil>
}

func ExampleAllowList() {
	free, err := algo.NewKeySet([]string{"monitoring"}, []string{"internal-"})
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := algo.AllowList(algo.Must(algo.NewTokenBucket(algo.PerHour(1))), free)
	for _, key := range []string{"internal-7", "internal-7", "alice", "alice"} {
		lease, _ := limiter.Acquire(context.Background(), key, 1)
		fmt.Println(key, lease.Allowed, lease.Source)
		lease.Release(algo.Succeeded)
	}
	// Output:
	// internal-7 true off
	// internal-7 true off
	// alice true local
	// alice false local
}

func ExampleDenyList() {
	banned, err := algo.NewKeySet([]string{"mallory"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	limiter := algo.DenyList(algo.Must(algo.NewTokenBucket(algo.PerHour(1))), banned)
	for _, key := range []string{"mallory", "alice"} {
		lease, _ := limiter.Acquire(context.Background(), key, 1)
		fmt.Println(key, lease.Allowed, lease.Reason)
		lease.Release(algo.Succeeded)
	}
	// Output:
	// mallory false never
	// alice true admitted
}

func ExampleKeySet_Set() {
	keys, err := algo.NewKeySet([]string{"monitoring"}, nil)
	fmt.Println(keys.Contains("monitoring"), err)
	err = keys.Set(nil, []string{"internal-"})
	fmt.Println(keys.Contains("monitoring"), keys.Contains("internal-7"), err)
	// Output:
	// true <nil>
	// false true <nil>
}

// Three denials within a minute ban a caller for ten minutes, next time for
// twenty, and for a day at most.
func ExampleBan() {
	limiter, err := algo.NewBan(algo.Must(algo.NewTokenBucket(algo.PerMinute(1))),
		algo.PerMinute(3), 10*time.Minute, 24*time.Hour)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 5 {
		lease, _ := limiter.Acquire(context.Background(), "mallory", 1)
		fmt.Println(lease.Allowed, lease.RetryAfter.Round(time.Minute))
		lease.Release(algo.Succeeded)
	}
	limiter.Reset("mallory")
	fmt.Println(limiter.Banned("mallory"))
	// Output:
	// true 0s
	// false 1m0s
	// false 1m0s
	// false 10m0s
	// false 10m0s
	// 0s
}

func ExampleUnlimited() {
	lease, _ := algo.Unlimited().Acquire(context.Background(), "alice", 1_000_000)
	fmt.Println(lease.Allowed, lease.Source)
	lease.Release(algo.Succeeded)
	// Output: true off
}
