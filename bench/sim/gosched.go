package sim

import "time"

// GoScheduler is a server written in Go, as its scheduler sees it. Requests wait
// three times: as data on a connection that has not been polled, as goroutines
// in the global queue, and in the local queue of a processor. Only when a
// request's goroutine runs for the first time is the gate asked, and by then
// most of the waiting is over: the number in flight behind the gate shows little of
// the load.
//
// The model is runtime/proc.go of Go 1.26: local queues of 256, half of
// which move to the global one when they are full; every 61st turn looks at the
// global queue first; a processor without work takes its share of the global
// queue, then polls the network, then steals half of another's queue; a goroutine that
// has run for the quantum goes to the end of the global queue; timers that fire make
// their goroutine the next to run. The poller hands over at most 128 connections,
// the oldest that are ready, and the newest of these first. Is there work all the
// time, the monitor thread polls every 10 ms into the global queue.
//
// Not modelled: accepting connections, the garbage collector, stealing of timers,
// the time that a sleeping thread needs to wake up.
type GoScheduler struct {
	// Unmonitored leaves out the monitor thread, as if it were starved.
	Unmonitored bool
}

const (
	goQuantum  = int64(10 * time.Millisecond)
	goPolls    = 128
	goLocal    = 256
	goFairness = 61
)

type goSched struct {
	GoScheduler
	w       *world
	cores   []goCore
	idle    int
	global  queue
	kernel  queue // connections with data
	waiting int   // in all local queues
	polled  int64
	slow    float64 // duration of a nanosecond of work beside the neighbour
	first   int     // the core that is done first
	due     int64
	scratch []*request
	halted  int64
	paused  bool
}

// goCore is a processor in the sense of the scheduler, a P.
type goCore struct {
	local queue
	front *request // runs next: a timer of it has fired
	runs  *request
	since int64
	until int64
	turn  int
	used  int64
}

func newGoSched(g GoScheduler, w *world) *goSched {
	s := &goSched{GoScheduler: g, w: w, cores: make([]goCore, w.Procs()), due: never, slow: 1 / (1 - w.Neighbour)}
	s.idle = len(s.cores)
	return s
}

func (s *goSched) arrive(r *request) {
	s.kernel.push(r)
	s.rouse()
}

// rouse gives work to idle cores.
func (s *goSched) rouse() {
	if s.idle == 0 || s.paused || len(s.kernel)+len(s.global)+s.waiting == 0 {
		return
	}
	for i := range s.cores {
		if s.cores[i].runs == nil && !s.schedule(i) {
			break
		}
	}
	s.plan()
}

// schedule finds work for the idle core i.
func (s *goSched) schedule(i int) bool {
	c := &s.cores[i]
	c.turn++
	r := s.find(i, c)
	if r == nil {
		return false
	}
	s.idle--
	if r.fate == fresh {
		s.w.admit(r)
	}
	slice := min(r.left, goQuantum)
	c.runs, c.since = r, s.w.now
	c.until = s.w.now + int64(float64(slice)*s.slow)
	return true
}

// wake makes a request that has waited the next to run on its last core.
func (s *goSched) wake(r *request) {
	c := &s.cores[r.core]
	r.fate, r.left = answered, s.w.cost.answer
	s.w.stats.work += r.left
	if c.runs != nil && s.idle > 0 {
		s.put(c, r) // an idle core steals it
		s.rouse()
		return
	}
	if c.front != nil {
		s.waiting--
		s.put(c, c.front)
	}
	c.front = r
	s.waiting++
	if !s.paused && c.runs == nil {
		s.schedule(r.core)
		s.plan()
	}
}

// plan finds the core that is done first, and when the monitor polls.
func (s *goSched) plan() {
	s.due, s.first = never, -1
	if s.paused {
		return
	}
	for i := range s.cores {
		if c := &s.cores[i]; c.runs != nil && c.until < s.due {
			s.due, s.first = c.until, i
		}
	}
	if s.first >= 0 && !s.Unmonitored && s.polled+goQuantum < s.due {
		s.due, s.first = max(s.polled+goQuantum, s.w.now), -1
	}
}

func (s *goSched) next() int64 { return s.due }

func (s *goSched) fire() {
	if s.first < 0 {
		s.monitor()
	} else {
		s.stop(s.first)
	}
	s.plan()
}

// monitor polls the network after a quantum without a poll.
func (s *goSched) monitor() {
	s.ready()
	for i := len(s.scratch) - 1; i >= 0; i-- {
		s.global.push(s.scratch[i])
	}
	s.rouse()
}

// stop ends the turn of the request on core i, and runs the next.
func (s *goSched) stop(i int) {
	c := &s.cores[i]
	r := c.runs
	ran := min(r.left, goQuantum)
	r.left -= ran
	c.used += ran
	c.runs = nil
	s.idle++
	switch {
	case r.left > 0:
		s.global.push(r)
	case r.io > 0:
		r.core = i
		s.w.agenda.add(s.w.now+r.io, endWait, r)
		r.io = 0
	default:
		s.w.over(r)
	}
	s.schedule(i)
	s.rouse()
}

func (s *goSched) freeze() { s.paused, s.halted = true, s.w.now; s.plan() }

func (s *goSched) thaw() {
	s.paused = false
	for i := range s.cores {
		s.cores[i].since += s.w.now - s.halted
		s.cores[i].until += s.w.now - s.halted
	}
	s.rouse()
	s.plan()
}

func (s *goSched) runnable() int { return len(s.global) + s.waiting }

func (s *goSched) cpu() (used int64) {
	now := s.w.now
	if s.paused {
		now = s.halted
	}
	for i := range s.cores {
		used += s.cores[i].used
		if s.cores[i].runs != nil {
			used += int64(float64(now-s.cores[i].since) / s.slow)
		}
	}
	return used
}

// queue is first in, first out.
type queue []*request

func (q *queue) push(r *request) { *q = append(*q, r) }

func (q *queue) pop() *request {
	r := (*q)[0]
	*q = (*q)[1:]
	return r
}
