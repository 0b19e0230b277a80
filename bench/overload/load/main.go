// Load overloads an HTTP server: it measures the capacity of the server, then sends a
// little less, several times as much, and a little less again, and prints the results
// every second. Clients give up after two seconds.
//
//	go run -C bench ./overload/load -url http://127.0.0.1:8080/ -times 5
//
// The answers must have a Content-Length. Give the load a core of its own, or
// it takes part of the capacity that it measures:
//
//	GOMAXPROCS=1 taskset -c 0 go run ./examples/overload
//	taskset -c 1 go run -C bench ./overload/load
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// steady is the load before and after the overload, of the capacity.
const steady = .85

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	url      string
	times    float64
	seconds  float64
	slo      time.Duration
	patience time.Duration
}

func parse(out io.Writer, args []string) (o options, err error) {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.StringVar(&o.url, "url", "http://127.0.0.1:8080/", "what to ask for")
	flags.Float64Var(&o.times, "times", 5, "the overload, of the capacity")
	flags.Float64Var(&o.seconds, "seconds", 8, "length of each of the three parts")
	flags.DurationVar(&o.slo, "slo", 250*time.Millisecond, "how late an answer still counts")
	flags.DurationVar(&o.patience, "patience", 2*time.Second, "after which clients give up")
	flags.SetOutput(out)
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if !(o.times > 0) || !(o.seconds > 0) {
		return o, fmt.Errorf("-times is %g and -seconds %g, want more than 0", o.times, o.seconds)
	}
	return o, nil
}

func run(out io.Writer, args []string) error {
	o, err := parse(out, args)
	if err != nil {
		return err
	}
	length := time.Duration(o.seconds * 1e9)
	capacity, err := capacityOf(o.url, min(length, 3*time.Second))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "capacity %.0f/s; an answer counts within %v\n", capacity, o.slo)
	parts := []loadgen.Phase{
		{Rate: steady * capacity, Duration: length},
		{Rate: o.times * capacity, Duration: length},
		{Rate: steady * capacity, Duration: length},
	}
	count := &counts{slo: o.slo}
	stop := count.everySecond(out, capacity, parts)
	answers, err := loadgen.Run(loadgen.Config{
		URL: o.url, Phases: parts, Timeout: o.patience, MaxOpen: 16000, Seed: uint64(time.Now().UnixNano()), Decided: count.add,
	})
	stop()
	if err != nil {
		return err
	}
	summary(out, answers, parts, capacity, o.slo)
	return nil
}

// capacityOf is the rate of answers while eight clients at a time wait for theirs: enough to keep it busy, too few to overload it.
func capacityOf(url string, d time.Duration) (float64, error) {
	const clients = 8
	start := time.Now()
	ok, _, err := loadgen.Closed(url, clients, d)
	if err == nil && ok == 0 {
		err = errors.New("no answer with status 200")
	}
	return float64(ok) / time.Since(start).Seconds(), err
}
