// Command overload measures the part of a real server's capacity that limiters keep under far
// higher demand: a server process and clients that give up.
//
//	overload -server PROGRAM -json FILE             a server and an open-loop generator, on a
//	                                                processor each
//	overload -report DIR -json FILE                 what those figures say, and their picture
//	overload -server PROGRAM -kinds burst,closed    other traffic, and several processors
//	overload -url http://127.0.0.1:8080/ -loads 5   a server that runs already, whose answers have
//	                                                a Content-Length
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

var (
	bin      = flag.String("server", "", "the server's program")
	works    = flag.String("work", "500us,5ms,30ms", "handlers: processor time, +waiting; or mix")
	loads    = flag.String("loads", "0.85,2,5,10", "of the capacity; below 1: without a step")
	limiters = flag.String("limiter", "none,default", "limiters, with /listener at the socket, with /grpc or /tap over gRPC")
	seconds  = flag.Float64("seconds", 6, "length of the overload, or of each measurement of a table")
	records  = flag.String("json", "", "append the figures to this file")
	seed     = flag.Uint64("seed", 1, "of the arrivals")
	page     = flag.String("report", "", "measure nothing; print what the figures in -json say, and draw their picture into this directory")
	kinds    = flag.String("kinds", "", "tables to measure instead; all: "+allKinds)
	procs    = flag.String("procs", "2,4,8,16", "processors of the server, for the table of cores; those that are not there are left out")
	protos   = flag.String("protocols", allProtocols, "protocols, for the table of cores")
	url      = flag.String("url", "", "the server that runs already")
	slo      = flag.Duration("slo", 250*time.Millisecond, "how late an answer of it still counts")
)

func main() {
	flag.Parse()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(6 << 30)
	run := matrixRun
	switch {
	case *page != "":
		run = func() error {
			text, err := report(*records, *page)
			fmt.Print(text)
			return err
		}
	case *kinds != "":
		run = tables
	case *url != "":
		run = func() error { return running(*url, *slo) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

// running overloads a server that runs already, by each of the loads.
func running(url string, slo time.Duration) error {
	times, err := parseLoads()
	if err != nil {
		return err
	}
	// Enough clients to keep it busy, too few to overload it.
	const clients, patience = 8, 2 * time.Second
	start := time.Now()
	all, err := loadgen.Closed(url, clients, min(length(), 3*time.Second))
	if err != nil {
		return err
	}
	f := figures{Work: "-", Limiter: "-", Capacity: float64(count(all, served)) / time.Since(start).Seconds()}
	if f.Capacity == 0 {
		return errors.New("no answer with status 200")
	}
	fmt.Println(heading)
	for _, f.Times = range times {
		p := planOf(length(), f.Times)
		all, err := loadgen.Run(loadgen.Config{URL: url, Phases: p.phases(f.Capacity, f.Times), Timeout: patience, MaxOpen: mostOpen, Seed: *seed})
		if err != nil {
			return err
		}
		f.take(all, p, slo)
		fmt.Println(&f)
	}
	return nil
}

func length() time.Duration { return time.Duration(*seconds * 1e9) }
