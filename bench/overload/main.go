// Command overload measures the part of a real server's capacity that limiters keep under far
// higher demand: a server process and clients that give up.
//
//	overload -server PROGRAM -json FILE             a server and an open-loop generator, on a
//	                                                processor each
//	overload -report DIR -json FILE                 what those figures say, and their picture
//	overload -server PROGRAM -kinds burst,closed    other traffic, and several processors
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"
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
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func length() time.Duration { return time.Duration(*seconds * 1e9) }
