// Command fleet measures decisions on one Redis by several processes, of sluice and of
// redis_rate in turns:
//
//	go run ./fleet -processes 8 -callers 64 -seconds 3 -rounds 5
//
// It needs a redis-server in PATH.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

var (
	processes = flag.Int("processes", 8, "processes at once")
	callers   = flag.Int("callers", 64, "goroutines of each process")
	seconds   = flag.Float64("seconds", 3, "length of a turn")
	rounds    = flag.Int("rounds", 5, "turns of each library")
	worker    = flag.String("worker", "", "be one of the processes, of this library")
	addr      = flag.String("addr", "", "the server, for a worker")
)

const (
	keys  = 10_000
	warm  = time.Second // before the first decision that counts
	ample = 1_000_000_000
)

func main() {
	flag.Parse()
	if *worker != "" {
		fmt.Println(work())
		return
	}
	check(compare())
}

// compare starts a server, runs both libraries in turns and prints the medians.
func compare() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	at := l.Addr().String()
	check(l.Close())
	_, port, _ := net.SplitHostPort(at)
	server := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no")
	check(server.Start())
	defer func() { _ = server.Process.Kill() }()
	time.Sleep(warm)
	var ours, peers, ratios []float64
	for range *rounds {
		a, err := turn("sluice", at)
		if err != nil {
			return err
		}
		b, err := turn("redis_rate", at)
		if err != nil {
			return err
		}
		ours, peers, ratios = append(ours, a), append(peers, b), append(ratios, b/a)
	}
	fmt.Printf("%d processes of %d callers: sluice %.0f, redis_rate %.0f decisions a second; sluice takes %.2f x its time (%.2f - %.2f)\n",
		*processes, *callers, median(ours), median(peers), median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

// turn runs the processes of one library, and returns their decisions a second.
func turn(library, at string) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	counts, errs := make([]float64, *processes), make([]error, *processes)
	var group sync.WaitGroup
	for i := range counts {
		group.Go(func() {
			process := exec.Command(self, "-worker", library, "-addr", at, "-callers", strconv.Itoa(*callers), "-seconds", fmt.Sprint(*seconds))
			process.Stderr = os.Stderr
			out, err := process.Output()
			if err == nil {
				counts[i], err = strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
			}
			errs[i] = err
		})
	}
	group.Wait()
	var all float64
	for _, n := range counts {
		all += n
	}
	return all / *seconds, errors.Join(errs...)
}

// work decides in one process, and returns the decisions that counted.
func work() int64 {
	client := redis.NewClient(&redis.Options{Addr: *addr, PoolSize: *callers})
	decide := ofSluice(client)
	if *worker == "redis_rate" {
		peer, limit := redis_rate.NewLimiter(client), redis_rate.Limit{Rate: 1_000_000, Burst: ample, Period: time.Second}
		decide = func(ctx context.Context, key string) error {
			_, err := peer.Allow(ctx, key, limit)
			return err
		}
	}
	begin := time.Now().Add(warm)
	end := begin.Add(time.Duration(*seconds * float64(time.Second)))
	var counted atomic.Int64
	var group sync.WaitGroup
	for c := range *callers {
		group.Go(func() {
			for i := c; ; i++ {
				check(decide(context.Background(), "key"+strconv.Itoa(i*7919%keys)))
				now := time.Now()
				if now.After(end) {
					return
				}
				if now.After(begin) {
					counted.Add(1)
				}
			}
		})
	}
	group.Wait()
	return counted.Load()
}

// ofSluice decides with a token bucket. A decision that is not of Redis does not count.
func ofSluice(client *redis.Client) func(context.Context, string) error {
	store := algo.Must(distributed.New(client, distributed.WithTimeout(time.Second)))
	limiter := algo.Must(store.TokenBucket("fleet", algo.PerSecond(1_000_000), algo.Burst(ample)))
	return func(ctx context.Context, key string) error {
		lease, err := limiter.Acquire(ctx, key, 1)
		if err == nil && lease.Source != algo.SourceRemote {
			err = fmt.Errorf("a local decision")
		}
		return err
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}
