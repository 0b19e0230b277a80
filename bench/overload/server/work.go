package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// work is the work of a handler.
type work struct {
	cpu   time.Duration // processor time
	io    time.Duration // waiting
	rare  time.Duration // processor time of one in twenty
	shape func()        // instead of all that, or nil
}

func (w work) do() {
	if w.shape != nil {
		w.shape()
		return
	}
	cpu := w.cpu
	if w.rare > 0 && turn.Add(1)%20 == 0 {
		cpu = w.rare
	}
	spin(int(float64(*perMS) * cpu.Seconds() * 1000))
	if w.io > 0 {
		time.Sleep(w.io)
	}
}

// sink keeps the compiler from leaving the work out.
var sink atomic.Uint64

// turn is the number of requests: every twentieth is a rare one, so that a short
// measurement of the capacity has its share of them.
var turn atomic.Uint64

// spin is a fixed amount of work, not of time: time that another process takes
// is not counted as work.
func spin(steps int) {
	x := uint64(88172645463325252)
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	if x == 0 {
		sink.Add(1)
	}
}

// calibrate is how many steps take a millisecond: the fastest of many trials.
func calibrate() int {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const steps = 1_000_000
	best := time.Hour
	for range 100 {
		start := time.Now()
		spin(steps)
		best = min(best, time.Since(start))
	}
	return int(steps * float64(time.Millisecond) / float64(best))
}

// workOf reads "5ms", "2ms+50ms" (waiting), "mix", or the name of a shape.
func workOf(s string) (w work, _ error) {
	if s == "mix" {
		w.cpu, w.rare = time.Millisecond, 50*time.Millisecond
		return w, nil
	}
	if w.shape = shaped(s); w.shape != nil {
		return w, nil
	}
	for i, part := range strings.Split(s, "+") {
		d, err := time.ParseDuration(part)
		if err != nil || i > 1 {
			return w, fmt.Errorf("the work is %q, want a time, two with a plus, mix, json, fanout, bimodal, mutex or proxy", s)
		}
		if i == 0 {
			w.cpu = d
		} else {
			w.io = d
		}
	}
	return w, nil
}
