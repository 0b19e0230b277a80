package main

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// counts are the results so far.
type counts struct {
	slo                        time.Duration
	good, late, rejected, gone atomic.Int64
}

func (c *counts) add(a loadgen.Answer) {
	switch {
	case a.OK(c.slo):
		c.good.Add(1)
	case a.Status == 200:
		c.late.Add(1)
	case a.Status > 0:
		c.rejected.Add(1)
	default:
		c.gone.Add(1)
	}
}

// everySecond prints a line a second until stop is called.
func (c *counts) everySecond(out io.Writer, capacity float64, parts []loadgen.Phase) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		second := time.NewTicker(time.Second)
		defer second.Stop()
		start := time.Now()
		for {
			select {
			case <-end:
				return
			case <-second.C:
				c.print(out, time.Since(start), capacity, parts)
			}
		}
	}()
	return func() { close(end); <-ended }
}

func (c *counts) print(out io.Writer, at time.Duration, capacity float64, parts []loadgen.Phase) {
	good := c.good.Swap(0)
	fmt.Fprintf(out, "%4.0fs  load %4.2fx  %5d in time (%3.0f %%)  %5d late  %5d rejected  %5d gave up\n", at.Seconds(),
		rateAt(at-time.Second/2, parts)/capacity, good, 100*float64(good)/capacity, c.late.Swap(0), c.rejected.Swap(0), c.gone.Swap(0))
}

// rateAt is the rate of the part that at lies in, 0 after the last.
func rateAt(at time.Duration, parts []loadgen.Phase) float64 {
	for _, p := range parts {
		if at < p.Duration {
			return p.Rate
		}
		at -= p.Duration
	}
	return 0
}

// summary is a row for each part, by when the requests were due.
func summary(out io.Writer, answers []loadgen.Answer, parts []loadgen.Phase, capacity float64, slo time.Duration) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nload\trequests\tgoodput/capacity\tlate\trejected\tgave up\tp50\tp99\t\n")
	begin := time.Duration(0)
	for _, p := range parts {
		c := counts{slo: slo}
		var took []time.Duration
		n := 0
		for _, a := range answers {
			if a.At < begin || a.At >= begin+p.Duration {
				continue
			}
			n++
			c.add(a)
			if a.Status == 200 {
				took = append(took, a.Took)
			}
		}
		fmt.Fprintf(w, "%.2fx\t%d\t%.2f\t%d\t%d\t%d\t%v\t%v\t\n", p.Rate/capacity, n, float64(c.good.Load())/p.Duration.Seconds()/capacity,
			c.late.Load(), c.rejected.Load(), c.gone.Load(), quantile(took, .5), quantile(took, .99))
		begin += p.Duration
	}
	w.Flush()
}

// quantile is of the answers with status 200, in time or not.
func quantile(took []time.Duration, q float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[int(q*float64(len(took)-1))].Round(100 * time.Microsecond)
}
