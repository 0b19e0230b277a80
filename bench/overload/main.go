// Command overload measures what limiters keep of a real server's capacity when
// far more is asked of it: a server process on one core, an open-loop load
// generator on another, clients that give up.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/loadgen"
)

var (
	bin      = flag.String("server", "", "the server's program")
	works    = flag.String("work", "500us,5ms,30ms", "handlers")
	times    = flag.String("times", "2,5,10", "loads, of the capacity")
	limiters = flag.String("limiter", "none,default", "limiters")
	seconds  = flag.Float64("seconds", 6, "length of the overload")
	out      = flag.String("json", "", "append the figures to this file")
	seed     = flag.Uint64("seed", 1, "of the arrivals")
)

func main() {
	flag.Parse()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(6 << 30)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func run() error {
	s, err := startServer(*bin)
	if err != nil {
		return err
	}
	spin := s.addr
	s.stop()
	fmt.Printf("%-10s %-9s %5s %7s %7s | %5s %7s %7s %6s %6s | %6s %6s %6s %s\n", "work", "limiter", "load", "cap/s", "left", "good", "p50", "p99", "reject", "gaveup", "before", "after", "lost", "recovery")
	for _, work := range strings.Split(*works, ",") {
		if err := measure(work, spin); err != nil {
			return err
		}
	}
	return nil
}

func measure(work, spin string) error {
	f := figures{Work: work, Transport: "http"}
	var err error
	if f.Capacity, _, err = closed(work, spin, "none"); err != nil {
		return err
	}
	if _, f.RejectCost, err = closed(work, spin, "rejects"); err != nil {
		return err
	}
	for _, t := range strings.Split(*times, ",") {
		if f.Times, err = strconv.ParseFloat(t, 64); err != nil {
			return err
		}
		spent := f.Capacity * f.RejectCost
		f.Left = max((1-f.Times*spent)/(1-spent), 0)
		for _, l := range strings.Split(*limiters, ",") {
			f.Limiter = l
			if err := f.cell(work, spin); err != nil {
				return err
			}
		}
	}
	return nil
}

// closed measures answers a second, and the processor time of each.
func closed(work, spin, limiter string) (rate, cost float64, err error) {
	s, err := startServer(*bin, "-work", work, "-limiter", limiter, "-spin", spin)
	if err != nil {
		return 0, 0, err
	}
	defer s.stop()
	n := 8
	if strings.Contains(work, "+") {
		n = 100
	}
	url := "http://" + s.addr + "/"
	if _, _, err := loadgen.Closed(url, n, 500*time.Millisecond); err != nil {
		return 0, 0, err
	}
	cpu, start := s.cpu(), time.Now()
	ok, other, err := loadgen.Closed(url, n, 3*time.Second)
	took := time.Since(start).Seconds()
	return float64(ok) / took, (s.cpu() - cpu).Seconds() / float64(ok+other), err
}

func (f *figures) cell(work, spin string) error {
	s, err := startServer(*bin, "-work", work, "-limiter", f.Limiter, "-spin", spin)
	if err != nil {
		return err
	}
	defer s.stop()
	slo := sloOf(work)
	if f.Times < 1 {
		return f.calm(s, slo)
	}
	p := plan{before: 4 * time.Second, during: time.Duration(*seconds * 1e9), after: 5 * time.Second, settle: 2 * time.Second}
	p.before = max(p.before, time.Duration(*seconds*.6e9))
	low := .85 * f.Capacity
	all, err := loadgen.Run(loadgen.Config{
		URL: "http://" + s.addr + "/", Timeout: max(2*time.Second, 2*slo), MaxOpen: 16000, Seed: *seed,
		Phases: []loadgen.Phase{{Rate: low, Duration: p.before}, {Rate: f.Times * f.Capacity, Duration: p.during}, {Rate: low, Duration: p.after}},
	})
	if err != nil {
		return err
	}
	f.take(all, p, slo)
	debug.FreeOSMemory()
	fmt.Printf("%-10s %-9s %5.3gx %7.1f %7.3f | %5.3f %7s %7s %6.3f %6.3f | %6.4f %6.4f %6.4f %s\n", f.Work, f.Limiter, f.Times, f.Capacity, f.Left,
		f.Goodput, f.P50.Round(100*time.Microsecond), f.P99.Round(100*time.Microsecond), f.Rejected, f.GaveUp, f.Before, f.After, f.Lost, f.Recovery)
	return f.save()
}

// calm measures a load that fits.
func (f *figures) calm(s *server, slo time.Duration) error {
	all, err := loadgen.Run(loadgen.Config{
		URL: "http://" + s.addr + "/", Timeout: max(2*time.Second, 2*slo), MaxOpen: 16000, Seed: *seed,
		Phases: []loadgen.Phase{{Rate: f.Times * f.Capacity, Duration: time.Duration(3 * *seconds * 1e9)}},
	})
	if err != nil {
		return err
	}
	all = between(all, time.Second, time.Hour)
	f.Before = share(all, rejected)
	f.Goodput = share(all, func(a loadgen.Answer) bool { return a.OK(slo) }) * f.Times
	f.P50, f.P99 = quantiles(all)
	fmt.Printf("%-10s %-9s %5.3gx %7.1f %7.3f | %5.3f %7s %7s %6s %6s | %6.4f\n", f.Work, f.Limiter, f.Times, f.Capacity, f.Left,
		f.Goodput, f.P50.Round(100*time.Microsecond), f.P99.Round(100*time.Microsecond), "", "", f.Before)
	return f.save()
}

// sloOf is how late an answer still counts.
func sloOf(work string) time.Duration {
	switch work {
	case "100us":
		return 50 * time.Millisecond
	case "500us":
		return 100 * time.Millisecond
	case "5ms":
		return 250 * time.Millisecond
	case "100ms":
		return 1500 * time.Millisecond
	}
	return 500 * time.Millisecond
}

func (f *figures) save() error {
	if *out == "" {
		return nil
	}
	file, err := os.OpenFile(*out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(file).Encode(f); err != nil {
		return err
	}
	return file.Close()
}
