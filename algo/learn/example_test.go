package learn_test

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
)

// A client of a queue's API, which is neither HTTP nor gRPC, passes the answers itself.
func Example() {
	limit := learn.New(algo.PerSecond(50))
	send := func(ctx context.Context) error {
		lease, err := algo.Wait(ctx, limit, "queue", 1)
		if err != nil {
			return err
		}
		defer lease.Release(algo.Succeeded)
		sent := time.Now()
		// The API is called here, and denies the call for a minute.
		limit.Answered("queue", learn.Answer{Sent: sent, Units: 1, Denied: true, Wait: time.Minute})
		return nil
	}
	fmt.Println(send(context.Background()))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	fmt.Println(send(ctx) != nil)
	known := limit.Stats("queue")
	fmt.Println(known.Rate < 50, known.Wait.Round(time.Second), known.Denied, len(learn.In(limit)))
	// Output:
	// <nil>
	// true
	// true 1m0s 1 1
}

// Keys may begin with rates of their own.
func ExampleNewFunc() {
	limit := learn.NewFunc(func(customer string) float64 {
		if customer == "large" {
			return 100
		}
		return 5
	})
	rate := limit.Stats("large").Rate
	fmt.Println(rate)
	// Output: 100
}
