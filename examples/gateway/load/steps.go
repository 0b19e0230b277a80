package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// overhead prints the cost of each way to the upstream. The rounds go over all
// rows in turn, so other work of the machine affects all of them.
func (r *rig) overhead(seconds, rounds int) error {
	route := "routes:\n  - pattern: /\n    upstream: " + r.upstream + "\n"
	const one, three = "    limits: [{name: a, key: ip, limit: 1000000/s}]\n", "    limits: [{name: a, key: ip, limit: 1000000/s}, {name: b, key: global, limit: 1000000/s}, {name: c, key: [ip, route], limit: fixed-window 100000000/day}]\n"
	rows := []*row{{name: "no gateway", url: r.upstream}, {name: "bare httputil.ReverseProxy", url: r.bare}}
	for _, g := range []struct{ name, file string }{
		{"gateway, no limits, no overload protection", "overload: off\n" + route},
		{"gateway, overload protection", route},
		{"gateway, overload protection, 1 limit", route + one},
		{"gateway, overload protection, 3 limits", route + three},
	} {
		url, _, err := r.serveFile(fmt.Sprintf("overhead%d", len(rows)), g.file)
		if err != nil {
			return err
		}
		rows = append(rows, &row{name: g.name, url: url})
	}
	for _, connections := range []int{1, 16} {
		for range rounds {
			for _, row := range rows {
				before := r.processorTime(row.url)
				got, err := r.wrk(row.url, connections, seconds)
				if err != nil {
					return err
				}
				got.processor = r.processorTime(row.url) - before
				row.results = append(row.results, got)
			}
		}
		print(rows, connections, seconds, rounds)
	}
	return nil
}

type row struct {
	name, url string
	results   []result
}

func print(rows []*row, connections, seconds, rounds int) {
	fmt.Printf("\nwrk -t1 -c%d -d%ds, median of %d rounds\n", connections, seconds, rounds)
	fmt.Printf("%-44s %10s %8s %8s %12s %12s %8s %8s\n", "", "requests/s", "p50 us", "p99 us", "p50 to none", "p50 to bare", "cpu us", "shed")
	none, bare := rows[0].median(p50), rows[1].median(p50)
	for _, row := range rows {
		at := row.median(p50)
		fmt.Printf("%-44s %10.0f %8.0f %8.0f %+12.0f %+12.0f %8.1f %7.1f%%\n", row.name,
			row.median(result.perSecond), at, row.median(p99), at-none, at-bare, row.median(cpu), row.median(shed))
		row.results = nil
	}
}

func p50(r result) float64 { return float64(r.p50.Microseconds()) }
func p99(r result) float64 { return float64(r.p99.Microseconds()) }

// cpu is the processor time that the process of the row took for each request,
// in microseconds. It says more than latencies where others use the machine.
func cpu(r result) float64 {
	return float64(r.processor.Microseconds()) / float64(max(r.requests, 1))
}

// shed is the percentage of denied requests.
func shed(r result) float64 { return 100 * float64(r.denied) / float64(max(r.requests, 1)) }

func (r *row) median(of func(result) float64) float64 {
	all := slices.Clone(r.results)
	slices.SortFunc(all, func(a, b result) int { return cmp.Compare(of(a), of(b)) })
	return of(all[len(all)/2])
}

// limitsHold floods a limit, and counts its admissions at the upstream.
func (r *rig) limitsHold(seconds int) error {
	const rate, burst = 200, 1000
	url, _, err := r.serveFile("hold", fmt.Sprintf("overload: off\nroutes:\n  - pattern: /\n    upstream: %s\n    limits: [{name: all, key: global, limit: %d/s burst %d}]\n", r.upstream, rate, burst))
	if err != nil {
		return err
	}
	before, err := r.served()
	if err != nil {
		return err
	}
	start := time.Now()
	got, err := r.wrk(url, 16, seconds)
	if err != nil {
		return err
	}
	took := time.Since(start)
	after, err := r.served()
	if err != nil {
		return err
	}
	passed := after - before
	most := burst + rate*took.Seconds()
	least := burst + rate*got.took.Seconds()
	fmt.Printf("\nlimit %d/s burst %d under wrk -c16 for %.3f s (%.3f s with its start and end)\n", rate, burst, got.took.Seconds(), took.Seconds())
	fmt.Printf("requests %d, answers of 429 %d, broken %d\n", got.requests, got.denied, got.broken)
	fmt.Printf("reached the upstream: %d; burst + rate*t is %.0f to %.0f\n", passed, least, most)
	if float64(passed) > most || float64(passed) < .99*least || got.broken > 0 {
		return fmt.Errorf("the limit did not hold")
	}
	return nil
}

// reloads changes the file all the time under load. A quota that hardly refills
// must admit its units exactly once.
func (r *rig) reloads(seconds int) error {
	const quota = 1000
	file := func(i int) string {
		return fmt.Sprintf("overload: off\nroutes:\n  - pattern: /\n    upstream: %s\n    limits: [{name: quota, key: global, limit: 1/h burst %d}]\n  - pattern: /other%d\n    upstream: %s\n    limits: [{name: other%d, key: ip, limit: %d/s}]\n",
			r.upstream, quota, i%2, r.upstream, i%2, i+1)
	}
	url, path, err := r.serveFile("reload", file(0))
	if err != nil {
		return err
	}
	before, err := r.served()
	if err != nil {
		return err
	}
	stop, changed := make(chan struct{}), make(chan int, 1)
	go func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				changed <- i - 1
				return
			case <-time.After(70 * time.Millisecond):
				if err := r.write(path, file(i)); err != nil {
					fmt.Println(err)
				}
			}
		}
	}()
	got, err := r.wrk(url, 16, seconds)
	close(stop)
	times := <-changed
	if err != nil {
		return err
	}
	after, err := r.served()
	if err != nil {
		return err
	}
	fmt.Printf("\nthe file changed %d times under wrk -c16, a quota of %d\n", times, quota)
	fmt.Printf("requests %d, answers of 429 %d, broken %d, reached the upstream %d\n", got.requests, got.denied, got.broken, after-before)
	if after-before != quota || got.broken > 0 {
		return fmt.Errorf("a reload dropped requests or forgot debt")
	}
	return nil
}
