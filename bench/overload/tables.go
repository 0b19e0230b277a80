package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/sluice-go/sluice/bench/host"
	"github.com/sluice-go/sluice/bench/loadgen"
)

const (
	allKinds     = "pools,burst,closed,slowbody,events,metastable,tenants,quota,cores"
	allProtocols = "HTTP/1.1,HTTP/2," + manyClients + ",TLS"
	late         = 500 * time.Millisecond // how late an answer of the tables still counts
	patience     = 2 * time.Second
)

// tables prints a page of tables: traffic that is no Poisson process on one core.
func tables() error {
	all := map[string]func(rig){
		"pools": pools, "burst": bursts, "closed": closedLoops, "slowbody": slowBodies, "events": eventStreams,
		"metastable": metastable, "tenants": tenants, "quota": quotas, "cores": cores,
	}
	chosen := strings.Split(*kinds, ",")
	for _, kind := range chosen {
		if all[kind] == nil {
			return fmt.Errorf("there is no table %q, want some of %s", kind, allKinds)
		}
	}
	if _, err := parseLoads(); err != nil {
		return err
	}
	var err error
	r := rig{procs: min(2, runtime.NumCPU()), patience: patience, failure: &err}
	if r.spin, err = spinOf(r.command(*bin)); err != nil {
		return err
	}
	fmt.Printf("# Bursts, closed loops, slow clients, several processors\n\nMade by bench/overload: %d processors, %s, %s/%s. "+
		"The load comes from the same machine, so a capacity is the joint capacity of the server and its clients.\n",
		runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, kind := range chosen {
		if all[kind](r); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func names() []string { return strings.Split(*limiters, ",") }

// begin prints the title of a table and its head, with a column for each limiter.
func begin(text string, columns ...string) { heads(text, append(columns, names()...)...) }

func heads(text string, columns ...string) {
	fmt.Printf("\n## %s\n\n| %s |\n|%s\n", text, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

// try does something, unless the table has failed.
func (r rig) try(do func() error) {
	if *r.failure == nil {
		*r.failure = do()
	}
}

// row prints a cell for each limiter.
func (r rig) row(name string, cell func(rig) (string, error)) {
	r.cells(name, names(), func(r *rig, l string) { *r = r.as(l) }, cell)
}

// cells prints a cell for each of the variants of a rig.
func (r rig) cells(name string, variants []string, vary func(*rig, string), cell func(rig) (string, error)) {
	if *r.failure != nil {
		return
	}
	fmt.Print("| ", name, " |")
	for _, v := range variants {
		r := r
		vary(&r, v)
		r.try(func() error {
			return r.with(func(r rig) error {
				text, err := cell(r)
				fmt.Print(" ", text, " |")
				return err
			})
		})
	}
	fmt.Println()
}

// full is the capacity in a closed loop that takes all that the server can do.
func (r rig) full() (rate float64) {
	r.try(func() (err error) { rate, err = r.capacity(16*max(r.procs, 1), length()); return err })
	return rate
}

func phase(rate float64, d time.Duration) loadgen.Phase {
	return loadgen.Phase{Rate: rate, Duration: d}
}

// after are the answers to requests that were due from an instant on.
func after(all []loadgen.Answer, from time.Duration) []loadgen.Answer {
	return between(all, from, 1<<62)
}

// summary is what was denied, p99 of the others, and those that failed.
func summary(all []loadgen.Answer, err error) (string, error) {
	_, p99 := quantiles(all)
	s := fmt.Sprintf("%.1f %%, %v", 100*share(all, rejected), p99.Round(time.Millisecond))
	if n := count(all, gaveUp); n > 0 {
		s += fmt.Sprintf(", %d failed", n)
	}
	return s, err
}

func closedLoops(r rig) {
	begin("Closed loops\n\nAnswers within 500 ms, per second.", "handler", "connections")
	for _, r.work = range []string{"50us", "500us", "5ms"} {
		for _, n := range []int{64, 256, 1024} {
			r.row(fmt.Sprintf("%s | %d", r.work, n), func(r rig) (string, error) {
				if _, err := r.closed(n, time.Second/2); err != nil {
					return "", err
				}
				all, err := r.closed(n, length())
				return fmt.Sprintf("%.0f", float64(count(all, inTime(late)))/length().Seconds()), err
			})
		}
	}
}

// cores is the overload on several processors.
func cores(r rig) {
	begin("Several processors\n\nAnswers within 500 ms, as a share of the capacity; and p99 of all answers with status 200. At 0.85x also the rejections, at more the requests that got no answer in 2 s. Over HTTP/1.1 the generator is cheap; over HTTP/2 and TLS it is net/http's client, which takes more of the shared processors than the denials do, after a second of a closed loop of 512, which opens the connections.",
		"processors", "protocol", "handler", "load", "capacity, 1/s")
	var counts []int
	protocols := strings.Split(*protos, ",")
	r.try(func() (err error) {
		if known := keep(protocols, strings.Split(allProtocols, ",")); len(known) < len(protocols) {
			return fmt.Errorf("-protocols is %q, want some of %s", *protos, allProtocols)
		}
		if counts, err = host.Processors(*procs, runtime.NumCPU()); err != nil {
			err = fmt.Errorf("-procs: %w", err)
		}
		return err
	})
	for _, r.procs = range counts {
		for _, protocol := range protocols {
			for _, r.work = range strings.Split(*works, ",") {
				r.limiter = "none/" + protocol
				if protocol == "HTTP/1.1" {
					r.limiter = "none"
				}
				r.overloads(fmt.Sprintf("%d | %s", r.procs, protocol))
			}
		}
	}
}

// overloads has a row for each load.
func (r rig) overloads(name string) {
	rate := r.full()
	for _, times := range []float64{.85, 2, 5} {
		r.row(fmt.Sprintf("%s | %s | %gx | %.0f", name, r.work, times, rate), func(r rig) (string, error) {
			all, err := r.steady(min(times, .85)*rate, times*rate)
			_, p99 := quantiles(all)
			rest := share(all, gaveUp)
			if times < 1 {
				rest = share(all, rejected)
			}
			return fmt.Sprintf("%.2f, %v, %.1f %%", float64(count(all, inTime(late)))/length().Seconds()/rate, p99.Round(time.Millisecond), 100*rest), err
		})
	}
}

// steady is a second of requests at one rate, and then the length of a measurement at another, of
// which it returns the answers. net/http's client first opens its connections in a closed loop: 2000
// TLS handshakes in the first second are an overload of their own, in front of every handler.
func (r rig) steady(before, rate float64) ([]loadgen.Answer, error) {
	open := 2000
	if !r.fast() {
		open = 0
		if _, err := r.closed(512, time.Second); err != nil {
			return nil, err
		}
	}
	all, err := r.run(open, phase(before, time.Second), phase(rate, length()))
	return after(all, time.Second), err
}
