package main

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/internal/loadgen"
)

// figures is what one cell of the table says.
type figures struct {
	Work, Limiter string
	Transport     string
	Times         float64 // of the capacity
	Capacity      float64 // answers a second
	RejectCost    float64 // seconds of processor time
	Left          float64 // of the capacity, when everything too much is rejected
	Goodput       float64 // answers within the SLO, of the capacity
	P50, P99      time.Duration
	Rejected      float64 // of the arrivals under overload
	GaveUp        float64
	Before, After float64 // rejected at .85x
	Lost          float64 // at .85x afterwards: neither answered in time nor rejected
	Recovery      time.Duration
}

// plan is when the load changes.
type plan struct {
	before, during, after time.Duration
	settle                time.Duration // at the start of each phase, not counted
}

func (p plan) end() time.Duration { return p.before + p.during + p.after }

func between(all []loadgen.Answer, from, to time.Duration) []loadgen.Answer {
	at := func(a loadgen.Answer, t time.Duration) int { return int(a.At - t) }
	i, _ := slices.BinarySearchFunc(all, from, at)
	j, _ := slices.BinarySearchFunc(all, to, at)
	return all[i:j]
}

// share of answers for which is holds.
func share(all []loadgen.Answer, is func(loadgen.Answer) bool) float64 {
	n := 0
	for _, a := range all {
		if is(a) {
			n++
		}
	}
	return float64(n) / float64(max(len(all), 1))
}

func rejected(a loadgen.Answer) bool { return a.Status > 200 }
func gaveUp(a loadgen.Answer) bool   { return a.Status < 0 }

func (f *figures) take(all []loadgen.Answer, p plan, slo time.Duration) {
	before := between(all, p.settle, p.before)
	during := between(all, p.before+p.settle, p.before+p.during)
	after := between(all, p.before+p.during+p.settle, p.end())
	ok := func(a loadgen.Answer) bool { return a.OK(slo) }
	f.Before, f.After = share(before, rejected), share(after, rejected)
	f.Lost = share(after, func(a loadgen.Answer) bool { return !a.OK(slo) && !rejected(a) })
	f.Rejected, f.GaveUp = share(during, rejected), share(during, gaveUp)
	f.Goodput = share(during, ok) * float64(len(during)) / (p.during - p.settle).Seconds() / f.Capacity
	f.P50, f.P99 = quantiles(during)
	f.Recovery = recovery(between(all, p.before+p.during, p.end()), p.before+p.during, slo)
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
	const slice = 250 * time.Millisecond
	last := time.Duration(0)
	for i := 0; len(all) > 0 && all[len(all)-1].At > from+time.Duration(i)*slice; i++ {
		part := between(all, from+time.Duration(i)*slice, from+time.Duration(i+1)*slice)
		bad := 0
		for _, a := range part {
			if !a.OK(slo) {
				bad++
			}
		}
		if bad > 1 && bad*10 > len(part) {
			last = time.Duration(i+1) * slice
		}
	}
	return last
}
