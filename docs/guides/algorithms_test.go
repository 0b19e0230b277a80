package guides_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-go/sluice/algo"
)

func Example_algorithms() {
	perClient, err := algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20))

	spec, err2 := algo.Parse("fixed-window 1000/d aligned 2026-01-01T00:00:00Z")
	daily, err3 := spec.New()

	_, impossible := algo.NewTokenBucket(algo.PerSecond(10), algo.Slack(3))
	fmt.Println(perClient.Allow("alice", 1), err, err2, err3)
	fmt.Println(algo.About(daily))
	fmt.Println(impossible)
	// Output:
	// true <nil> <nil> <nil>
	// 1000-per-day
	// algo: token bucket: does not take the option Slack, only Burst, MaxWait, MaxKeys, DenyNew, Clock
}

// Four workers share a limit, and wait their turn.
func Example_workers() {
	outbound := algo.Must(algo.NewPacer(algo.PerSecond(1000), algo.MaxWait(time.Second)))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	jobs := make(chan func(), 8)
	for range cap(jobs) {
		jobs <- func() { fmt.Print("done ") }
	}
	close(jobs)

	worker := func() {
		for job := range jobs {
			lease, err := algo.Wait(ctx, outbound, "", 1)
			if err != nil {
				return // algo.ErrWait: the deadline comes before the turn
			}
			job()
			lease.Release(algo.Succeeded)
		}
	}

	var group sync.WaitGroup
	for range 4 {
		group.Go(worker)
	}
	group.Wait()
	// Output: done done done done done done done done
}

// A queue of one second in front of a service that suffers from bursts.
func Example_pacing() {
	outbound := algo.Must(algo.NewPacer(algo.PerSecond(2), algo.MaxWait(time.Second)))
	for range 4 {
		lease := algo.Must(outbound.Acquire(context.Background(), "", 1))
		fmt.Println(lease.Allowed, lease.Delay.Round(time.Second/2))
	}
	// Output:
	// true 0s
	// true 500ms
	// true 1s
	// false 0s
}
