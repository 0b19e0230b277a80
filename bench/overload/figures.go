package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// figures are the contents of one cell of the table.
type figures struct {
	Work, Limiter string
	Transport     string
	Times         float64 // of the capacity
	Capacity      float64 // a second, in time, without a limiter
	RejectCost    float64 // seconds of processor time
	Left          float64 // of the capacity, when everything too much is rejected
	Goodput       float64 // answers within the SLO, of the capacity
	P50, P99      time.Duration
	Rejected      float64 // of the arrivals under overload
	GaveUp        float64
	Before, After float64 // rejected at .85x
	Lost          float64 // at .85x afterwards: neither answered in time nor rejected
	Recovery      time.Duration
	Used          float64 // of the core, under overload
	Stolen        float64 // of all processors, by the host

	Failed string `json:",omitempty"` // why there are no figures
}

// slice is the resolution of the recovery.
const slice = 250 * time.Millisecond

func between(all []loadgen.Answer, from, to time.Duration) []loadgen.Answer {
	at := func(a loadgen.Answer, t time.Duration) int { return int(a.At - t) }
	i, _ := slices.BinarySearchFunc(all, from, at)
	j, _ := slices.BinarySearchFunc(all, to, at)
	return all[i:j]
}

func (f *figures) take(all []loadgen.Answer, p plan, slo time.Duration) {
	if p.calm() {
		f.takeCalm(between(all, p.settle, p.end()), slo)
		return
	}
	before := between(all, p.settle, p.before)
	during := between(all, p.before+p.settle, p.before+p.during)
	after := between(all, p.before+p.during+p.settle, p.end())
	ok := inTime(slo)
	f.Before, f.After = share(before, rejected), share(after, rejected)
	f.Lost = share(after, func(a loadgen.Answer) bool { return !a.OK(slo) && !rejected(a) })
	f.Rejected, f.GaveUp = share(during, rejected), share(during, gaveUp)
	f.Goodput = float64(count(during, ok)) / (p.during - p.settle).Seconds() / f.Capacity
	f.P50, f.P99 = quantiles(during)
	f.Recovery = recovery(between(all, p.before+p.during, p.end()), p.before+p.during, slo)
}

// takeCalm takes a load without a step.
func (f *figures) takeCalm(all []loadgen.Answer, slo time.Duration) {
	f.Before = share(all, rejected)
	f.GaveUp = share(all, gaveUp)
	f.Goodput = share(all, inTime(slo)) * f.Times
	f.P50, f.P99 = quantiles(all)
}

const heading = "work       limiter        load   cap/s   left | good /left      p50     p99 reject gaveup | before  after   lost recovery   cpu stolen"

// String is a line of the table.
func (f *figures) String() string {
	short := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	s := fmt.Sprintf("%-10s %-12s %5.3gx %7.1f", f.Work, f.Limiter, f.Times, f.Capacity)
	if f.Failed != "" {
		return s + " failed: " + f.Failed
	}
	if f.Times < 1 {
		return s + fmt.Sprintf("        | %5.3f       %8v %7v               | %6.4f", f.Goodput, short(f.P50), short(f.P99), f.Before)
	}
	return s + fmt.Sprintf(" %6.3f | %5.3f %5.3f %8v %7v %6.3f %6.3f | %6.4f %6.4f %6.4f %-8v %.2f   %.2f", f.Left, f.Goodput, f.ofLeft(),
		short(f.P50), short(f.P99), f.Rejected, f.GaveUp, f.Before, f.After, f.Lost, f.Recovery, f.Used, f.Stolen)
}

// left is the share of the capacity that is left at this load when everything
// too much is rejected.
func (f *figures) left() {
	spent := f.Capacity * f.RejectCost
	f.Left = max((1-f.Times*spent)/(1-spent), 0)
}

// ofLeft is the goodput as a share of the capacity that the cost of rejections
// leaves.
func (f *figures) ofLeft() float64 {
	if f.Left == 0 {
		return 0
	}
	return f.Goodput / f.Left
}

// appendLine adds one line of JSON to a file; no path, no line.
func appendLine(path string, v any) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(file).Encode(v), file.Close())
}

func quantiles(all []loadgen.Answer) (p50, p99 time.Duration) {
	var took []time.Duration
	for _, a := range all {
		if a.Status == 200 {
			took = append(took, a.Took)
		}
	}
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}

// recovery is the time until the end of the last quarter of a second in which
// more than a tenth of the arrivals, and more than one, were not served in time.
func recovery(all []loadgen.Answer, from time.Duration, slo time.Duration) time.Duration {
	last := time.Duration(0)
	for i := 0; len(all) > 0 && all[len(all)-1].At > from+time.Duration(i)*slice; i++ {
		part := between(all, from+time.Duration(i)*slice, from+time.Duration(i+1)*slice)
		if bad := len(part) - count(part, inTime(slo)); bad > 1 && bad*10 > len(part) {
			last = time.Duration(i+1) * slice
		}
	}
	return last
}
