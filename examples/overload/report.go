package main

import (
	"context"
	"fmt"
	"io"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/sluice-go/sluice/adaptive"
)

// report prints a line a second until ctx ends. Without a limiter, an overloaded
// server is late even with that.
func (a *api) report(ctx context.Context, out io.Writer) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	var came, done int64
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-second.C:
		}
		// Rates are over the time that has passed, which is more than a second
		// where this goroutine had to wait for the processor.
		took := time.Since(last).Seconds()
		last = time.Now()
		c, d := a.came.Load(), a.done.Load()
		fmt.Fprintf(out, "%s  %5.0f requests/s  %5.0f done/s  %4d runnable%s\n", last.Format(time.TimeOnly),
			float64(c-came)/took, float64(d-done)/took, runnable(), a.explained())
		came, done = c, d
	}
}

// explained is the state of the limiter: the limit of each strategy, with why it
// denies, and how many it has denied.
func (a *api) explained() string {
	if a.limiter == nil {
		return ""
	}
	e := a.limiter.Explain()
	var b strings.Builder
	for _, s := range e.Strategies {
		fmt.Fprintf(&b, "  %s", state(s))
	}
	fmt.Fprintf(&b, "  denied: %v", e.Denied)
	return b.String()
}

// mostLimit is the limit of a strategy that allows anything.
const mostLimit = 1<<31 - 1

func state(s adaptive.State) string {
	limit := fmt.Sprint(s.Limit)
	if s.Limit == mostLimit {
		limit = "none"
	}
	if s.Overloaded {
		return fmt.Sprintf("%s limit %s (%s)", s.Name, limit, s.Cause)
	}
	return fmt.Sprintf("%s limit %s", s.Name, limit)
}

// runnable is the run queue: goroutines that are ready and wait for a processor.
func runnable() uint64 {
	sample := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
