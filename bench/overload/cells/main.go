// Cells measures a real server process where real traffic is not a Poisson process
// on one core: bursts, idle connections, closed loops, slow bodies, event streams, clients that
// retry, tenants, containers with a quota, and several processors over HTTP/1.1, HTTP/2 and TLS.
// It prints a page of tables.
//
//	go run ./overload/cells -server PROGRAM [-kinds burst,closed,...] [-procs 2,4,8,16] [-protocols TLS,...] [-work 500us,...] [-seconds 3]
//
// The load comes from the same machine, mostly by net/http's client, and takes processor
// time from the server: a capacity is the joint capacity of both.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const allProtocols = "HTTP/1.1,HTTP/2," + manyClients + ",TLS"

var (
	bin     = flag.String("server", "", "the server's program")
	kinds   = flag.String("kinds", "pools,burst,large,idle,closed,slowbody,events,listener,price,metastable,tenants,classes,quota,cores", "tables to measure")
	procs   = flag.String("procs", "2,4,8,16", "processors of the server, for the table of cores; those that are not there are left out")
	names   = flag.String("limiter", "none,default", "limiters to compare")
	protos  = flag.String("protocols", allProtocols, "protocols, for the table of cores")
	works   = flag.String("work", "500us,5ms", "handlers, for the table of cores")
	seconds = flag.Float64("seconds", 3, "length of each measurement")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cells:", err)
		os.Exit(1)
	}
}

func run() error {
	spin, err := output(*bin)
	if err != nil {
		return err
	}
	fmt.Printf("# Bursts, closed loops, slow clients, several processors\n\nMade by bench/overload/cells: %d processors, %s, %s/%s. "+
		"The load comes from the same machine, mostly by net/http's client, so a capacity is the joint capacity of the server and its clients.\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	tables := map[string]func(rig) error{
		"pools": pools, "burst": bursts, "large": largeBurst, "idle": idleConnections, "closed": closedLoops, "slowbody": slowBodies, "events": eventStreams, "listener": listener,
		"metastable": metastable, "tenants": tenants, "classes": priorities, "quota": quotas, "cores": cores, "price": prices,
	}
	for _, kind := range strings.Split(*kinds, ",") {
		if tables[kind] == nil {
			return fmt.Errorf("there is no table %q", kind)
		}
	}
	for _, p := range strings.Split(*protos, ",") {
		if !slices.Contains(strings.Split(allProtocols, ","), p) {
			return fmt.Errorf("-protocols has %q, want some of %s", p, allProtocols)
		}
	}
	if *seconds <= 0 {
		return fmt.Errorf("-seconds is %v, want more than 0", *seconds)
	}
	for _, kind := range strings.Split(*kinds, ",") {
		if err := tables[kind](rig{spin: spin, procs: min(2, runtime.NumCPU())}); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func length() time.Duration { return time.Duration(*seconds * 1e9) }

func limiters() []string { return strings.Split(*names, ",") }

// processors returns the counts in -procs that this machine has.
func processors() (all []int, err error) {
	for _, s := range strings.Split(*procs, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-procs has %q, want numbers above 0", s)
		}
		if n <= runtime.NumCPU() {
			all = append(all, n)
		}
	}
	return all, nil
}
