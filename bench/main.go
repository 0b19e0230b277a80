package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"
)

func main() {
	quick := flag.Bool("quick", false, "short samples: half a minute, for a first look")
	only := flag.String("only", "", "run only the works and attacks whose id matches this expression")
	procs := flag.String("scaling", "", "measure on these numbers of processors instead, such as 1,2,4,8,16, and print the tables")
	flag.Parse()
	var err error
	if *procs != "" {
		err = scaling(*procs, plan{rounds: 10, sample: 50 * time.Millisecond})
	} else {
		err = run(*quick, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(quick bool, only string) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only is %q: %w", only, err)
	}
	quiet()
	r := report{when: time.Now(), quick: quick, keys: 1_000_000, plan: plan{rounds: 20, sample: 50 * time.Millisecond}}
	if quick {
		r.keys, r.plan = 200_000, plan{rounds: 10, sample: 4 * time.Millisecond}
	}
	r.machine = thisMachine()
	if err := r.collect(chosen); err != nil {
		return err
	}
	r.print(os.Stdout)
	return nil
}

// collect runs everything that is chosen and prints its progress.
func (r *report) collect(chosen *regexp.Regexp) error {
	all := works()
	if chosen.MatchString("redis") {
		addr, stop, err := startRedis()
		if err != nil {
			return err
		}
		defer stop()
		all = append(all, redisWorks(addr)...)
		r.remote = remoteCosts(addr)
	}
	for _, w := range all {
		if !chosen.MatchString(w.id) {
			continue
		}
		done := announce(w.title)
		res, err := measure(w, r.plan)
		done()
		if err != nil {
			return err
		}
		r.results = append(r.results, res)
	}
	if chosen.MatchString("memory") {
		done := announce("Memory")
		r.prints = footprints(r.keys)
		done()
	}
	for _, a := range attacks() {
		if chosen.MatchString(a.id) {
			done := announce(a.title)
			r.attacks = append(r.attacks, attacked{a, a.run()})
			done()
		}
	}
	return nil
}

// announce names the current work, and afterwards its duration.
func announce(title string) (done func()) {
	start := time.Now()
	fmt.Fprint(os.Stderr, title)
	return func() { fmt.Fprintf(os.Stderr, " (%.1f s)\n", time.Since(start).Seconds()) }
}
