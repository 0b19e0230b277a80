package decide

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// provider is a server with a limit of its own. The rate is that of its bucket, or of its
// windows of 10 s.
type provider interface {
	// take decides about a unit; wait is what an honest server asks for.
	take(now time.Duration) (ok bool, wait time.Duration)
	set(rate float64)
}

type bucket struct {
	rate, burst, tokens float64
	at                  time.Duration
}

func (b *bucket) take(now time.Duration) (bool, time.Duration) {
	b.tokens = min(b.burst, b.tokens+b.rate*(now-b.at).Seconds())
	b.at = now
	if b.tokens < 1 {
		return false, seconds((1 - b.tokens) / b.rate)
	}
	b.tokens--
	return true, 0
}
func (b *bucket) set(rate float64) { b.rate, b.burst = rate, max(6, rate/5) }

type fixedServer struct {
	rate  float64
	index int64
	spent float64
}

const period = 10 * time.Second

func (f *fixedServer) take(now time.Duration) (bool, time.Duration) {
	if i := int64(now / period); i != f.index {
		f.index, f.spent = i, 0
	}
	if f.spent+1 > f.rate*period.Seconds() {
		return false, period - now%period
	}
	f.spent++
	return true, 0
}
func (f *fixedServer) set(rate float64) { f.rate = rate }

type sliding struct {
	rate float64
	log  []time.Duration
}

func (s *sliding) take(now time.Duration) (bool, time.Duration) {
	for len(s.log) > 0 && s.log[0] <= now-period {
		s.log = s.log[1:]
	}
	quota := int(s.rate * period.Seconds())
	if len(s.log) >= quota {
		return false, s.log[len(s.log)-quota] + period - now
	}
	s.log = append(s.log, now)
	return true, 0
}
func (s *sliding) set(rate float64) { s.rate = rate }

// A stranger with the same credential sends half of the rate.
func (w *world) stranger(rate float64, gone *bool) {
	if !*gone {
		w.p.take(w.now)
		w.after(seconds(1/rate), func() { w.stranger(rate, gone) })
	}
}

type event struct {
	at time.Duration
	do func()
}
type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// world is a provider, and senders 40 to 80 ms away.
type world struct {
	now    time.Duration
	queue  events
	rnd    *rand.Rand
	p      provider
	tells  func(time.Duration) time.Duration // what the provider asks for, of what an honest one would
	ok, no int
}

func (w *world) after(d time.Duration, do func()) { heap.Push(&w.queue, event{w.now + d, do}) }

func (w *world) run(until time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}

// sender sends whenever its model lets it, until dead.
func (w *world) sender(m *Learner, dead *bool) {
	if *dead {
		return
	}
	if wait := m.Ahead(w.now); wait > 0 {
		w.after(wait, func() { w.sender(m, dead) })
		return
	}
	m.Start(w.now, 1)
	sent := w.now
	there := 20*time.Millisecond + time.Duration(w.rnd.Int64N(int64(20*time.Millisecond)))
	w.after(there, func() {
		ok, wait := w.p.take(w.now)
		if ok {
			w.ok++
		} else {
			w.no++
		}
		w.after(there, func() {
			if ok {
				m.Accepted(w.now, sent, 1)
			} else {
				m.Denied(w.now, sent, 1, w.tells(wait))
			}
		})
	})
	w.after(0, func() { w.sender(m, dead) })
}
