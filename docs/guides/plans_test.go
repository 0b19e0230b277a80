package guides_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// A short and a long limit for each plan, and one by address for strangers.
func Example_plans() {
	plan := func(perSecond, perDay int64) []httpmw.Policy {
		return []httpmw.Policy{
			{Name: "second", Limiter: algo.Must(algo.NewTokenBucket(algo.PerSecond(perSecond))), Key: keyfunc.Context(userOf)},
			{Name: "day", Limiter: algo.Must(algo.NewFixedWindow(algo.PerDay(perDay))), Key: keyfunc.Context(userOf)},
		}
	}
	anonymous := algo.Must(algo.NewTokenBucket(algo.PerMinute(2)))
	limits := map[string][]httpmw.Policy{
		"free": plan(2, 1000),
		"pro":  plan(50, 100_000),
		"":     {{Name: "anonymous", Limiter: anonymous, Key: keyfunc.ClientIP()}},
	}
	plans := httpmw.NewPlans(keyfunc.Context(planOf), limits)
	handler := authenticate(plans.Limit(ok))

	for _, key := range []string{"key-a", "key-b", ""} {
		for range 3 {
			fmt.Print(get(handler, "/", key).Code, " ")
		}
		fmt.Println(get(handler, "/", key).Header().Get("RateLimit-Policy"))
	}

	limits["free"] = plan(10, 1000)
	err := plans.Set(limits)

	fmt.Println(err, get(handler, "/", "key-b").Code)
	// Output:
	// 200 200 200 "second";q=50;w=1, "day";q=100000;w=86400
	// 200 200 429 "second";q=2;w=1, "day";q=1000;w=86400
	// 200 200 429 "anonymous";q=2;w=60
	// <nil> 200
}

// One customer has a limit of his own, another is suspended.
func Example_overrides() {
	standard := algo.Must(algo.NewTokenBucket(algo.PerMinute(1)))
	large := algo.Must(algo.NewTokenBucket(algo.PerMinute(1000)))

	of := map[string]algo.Limiter{keyfunc.Identity("alice"): large, keyfunc.Identity("bob"): algo.DenyAll()}
	perUser := algo.ByKey(func(_ context.Context, user string) algo.Limiter {
		if own := of[user]; own != nil {
			return own
		}
		return standard
	})

	handler := authenticate(httpmw.Limit(perUser, keyfunc.Context(userOf), httpmw.WithName("user"))(ok))
	for _, key := range []string{"key-a", "key-a", "key-b", "key-c", "key-c"} {
		fmt.Println(key, get(handler, "/", key).Code)
	}
	// Output:
	// key-a 200
	// key-a 200
	// key-b 429
	// key-c 200
	// key-c 429
}

// One customer has a limit of his own in all instances.
func Example_ruleOverrides() {
	client, stop := redisClient()
	defer stop()
	ctx := context.Background()
	store := algo.Must(distributed.New(client, patient))
	defer store.Close()
	set := algo.Must(rules.New(ctx, store, "production"))
	defer set.Close()

	vip := map[string]algo.Spec{keyfunc.Identity("alice"): algo.Must(algo.Parse("1000/min"))}
	err := set.Put(ctx, "search", rules.Rule{Limit: algo.Must(algo.Parse("10/min")), Overrides: vip})

	alice := algo.Must(set.Limiter("search").Acquire(ctx, keyfunc.Identity("alice"), 1))
	bob := algo.Must(set.Limiter("search").Acquire(ctx, keyfunc.Identity("bob"), 1))
	fmt.Println(alice.Remaining, bob.Remaining, err)
	// Output: 999 9 <nil>
}

// A subscription that renews on the last day of each month.
func Example_months() {
	monthly := algo.Must(algo.NewFixedWindow(algo.Per(1000, algo.Month),
		algo.Zone("Europe/Berlin"), algo.StartDay(31)))

	fmt.Println(monthly.Allow("alice", 600), monthly.Allow("alice", 600))
	// Output: true false
}

// The limits of a file, which is followed.
func Example_file() {
	dir, _ := os.MkdirTemp("", "limits")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "limits.json")
	fmt.Println(os.WriteFile(path, []byte(`{"search": "1/min"}`), 0o600), serveFile(path))
	// Output: 200
	// 429
	// <nil> <nil>
}

func serveFile(path string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	limits, err := reload.Open(ctx, path, reload.Config{}) // {"search": "100/min burst 20"}
	if err != nil {
		return err
	}
	search, err := limits.Limiter("search")
	if err != nil {
		return err
	}
	handler := httpmw.Limit(search, keyfunc.ClientIP(), httpmw.WithName("search"))(ok)
	for range 2 {
		fmt.Println(get(handler, "/", "").Code)
	}
	return nil
}
