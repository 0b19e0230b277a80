// Command bench compares the decisions per second of this rate limit service and of
// envoyproxy/ratelimit's published design, one INCRBY and one EXPIRE for each descriptor of a
// request, on one redis-server that it starts:
//
//	go run ./bench                     some two minutes
//	go run ./bench -turn 300ms -turns 1    a first look
//
// The contenders take turns, so other work of the machine affects all of them. Calls are
// made in this process: gRPC would cost all of them the same, and hide the difference. Each
// has the limits of one file and answers the same RateLimitResponse statuses.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

var (
	turn    = flag.Duration("turn", 2*time.Second, "how long a contender runs at a time")
	turns   = flag.Int("turns", 5, "how often each runs; the medians count")
	clients = flag.Int("clients", 64, "calls at once")
)

func main() {
	flag.Parse()
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	if *turn <= 0 || *turns < 1 || *clients < 1 {
		return fmt.Errorf("turn, turns and clients have to be more than 0")
	}
	address, stop, err := startRedis()
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(out, "decisions per second (median of %d turns of %v, %d calls at once); ratio to envoyproxy/ratelimit's design\n\n", *turns, *turn, *clients)
	fmt.Fprintf(out, "| workload | this service | the design | ratio | with implicit pipelining | ratio |\n|---|---|---|---|---|---|\n")
	for _, w := range workloads {
		rates, admitted, err := compare(address, w)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		own, design, piped := rates[0], rates[1], rates[2]
		fmt.Fprintf(out, "| %s | %.0f | %.0f | %.2f | %.0f | %.2f |\n", w.name, own, design, own/design, piped, own/piped)
		fmt.Fprintf(os.Stderr, "%s: admitted %.3f, %.3f and %.3f of the decisions\n", w.name, admitted[0], admitted[1], admitted[2])
	}
	return nil
}

// contender decides requests of a workload.
type contender interface {
	// decide reports whether the request of a user is under all of its limits.
	decide(ctx context.Context, user int) (bool, error)
	close()
}

// compare runs the contenders in turns: medians of decisions per second, and the shares that
// they admitted.
func compare(address string, w workload) (rates, admitted [3]float64, err error) {
	var all [3]contender
	for i, make := range []func(string, workload) (contender, error){newOwn, newDesign, newPiped} {
		if all[i], err = make(address, w); err != nil {
			return rates, admitted, err
		}
		defer all[i].close()
	}
	var samples [3][]float64
	for range *turns {
		for i, c := range all {
			n, passed, err := load(c, w)
			if err != nil {
				return rates, admitted, err
			}
			samples[i] = append(samples[i], float64(n)/turn.Seconds())
			admitted[i] += float64(passed) / float64(n) / float64(*turns)
		}
	}
	for i := range samples {
		slices.Sort(samples[i])
		rates[i] = samples[i][len(samples[i])/2]
	}
	return rates, admitted, nil
}

// load calls a contender for a turn.
func load(c contender, w workload) (n, passed int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), *turn)
	defer cancel()
	var all, under atomic.Int64
	var failed atomic.Pointer[error]
	var running sync.WaitGroup
	for client := range *clients {
		running.Go(func() {
			for user := client; ctx.Err() == nil; user += *clients {
				ok, err := c.decide(context.Background(), user%w.users)
				if err != nil {
					failed.Store(&err)
					return
				}
				all.Add(1)
				if ok {
					under.Add(1)
				}
			}
		})
	}
	running.Wait()
	if e := failed.Load(); e != nil {
		return 0, 0, *e
	}
	return all.Load(), under.Load(), nil
}
