package algo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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

// Limits that live in files.
func ExampleParse() {
	spec, err := algo.Parse("100/min burst 20 wait 500ms")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spec.Rate.Count, spec.Rate.Period, spec.Burst, spec.MaxWait)

	limiter, err := spec.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, _ := limiter.Acquire(context.Background(), "alice", 1)
	fmt.Println(lease.Allowed, lease.Remaining, "of", lease.Limit)
	lease.Release(algo.Succeeded)

	_, err = algo.Parse("100/min burst many")
	fmt.Println(err)
	// Output:
	// 100 1m0s 20 500ms
	// true 19 of 20
	// algo: spec: burst is "many", want a whole number
}

func ExampleSpec_UnmarshalJSON() {
	var limits map[string]algo.Spec
	err := json.Unmarshal([]byte(`{
		"api":   "100/s burst 200",
		"login": {"rate": "5/15m", "keys": 100000, "full": "deny-new"}
	}`), &limits)
	fmt.Println(limits["api"], err)
	fmt.Println(limits["login"], err)
	// Output:
	// 100/s burst 200 <nil>
	// 5/15m0s keys 100000 full deny-new <nil>
}

func ExampleParseRate() {
	for _, s := range []string{"100/s", "5/15m", "1000/day", "5/blue"} {
		rate, err := algo.ParseRate(s)
		fmt.Println(rate.Count, rate.Period, err)
	}
	// Output:
	// 100 1s <nil>
	// 5 15m0s <nil>
	// 1000 24h0m0s <nil>
	// 0 0s algo: rate: period is "blue", want a duration such as 500ms, or s, min, h or day
}

// A package that makes limiters of its own reads a rate and options.
func ExampleSpec_With() {
	spec, err := algo.Spec{Rate: algo.PerSecond(400)}.With(algo.MaxWait(time.Second))
	fmt.Println(spec.Rate, spec.MaxWait, spec.Given("burst"), err)
	_, err = algo.Spec{Rate: algo.PerSecond(400)}.With(algo.Burst(-1))
	fmt.Println(err)
	// Output:
	// 400/s 1s false <nil>
	// algo: token bucket: burst is -1, want 1 or more
}

// A configuration is read again while its limits are in use.
func ExampleSpec_Apply() {
	limiter := algo.NewSwitch(algo.Must(algo.Must(algo.Parse("10/h burst 2")).New()))
	err := algo.Must(algo.Parse("10/h burst 5 wait 1m")).Apply(limiter)
	limit, _ := algo.Describe(limiter)
	fmt.Println(limit, err)
	fmt.Println(algo.Must(algo.Parse("sliding-log 10/h")).Apply(limiter))
	// Output:
	// 5-per-1800s <nil>
	// algo: token bucket: algorithm is "sliding-log" and cannot be changed in use: make a new limiter
}

func ExampleTokenBucket_Snapshot() {
	limiter := algo.Must(algo.NewTokenBucket(algo.PerDay(10)))
	limiter.Allow("alice", 7)
	data := limiter.Snapshot(slices.Values([]string{"alice", "bob"}))

	// In the next process.
	limiter = algo.Must(algo.NewTokenBucket(algo.PerDay(10)))
	if err := limiter.Restore(data); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(limiter.Allow("alice", 4), limiter.Allow("alice", 3))
	fmt.Println(limiter.Restore([]byte("something else")))
	// Output:
	// false true
	// algo: not a usable snapshot: it does not begin as one
}
