package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// answer is how a request of the overload ended.
type answer int

const (
	good     answer = iota
	late            // after the objective
	rejected        // by the limit
	gaveUp          // not answered in time, or not even sent
	answers
)

// peak is a count and the most that it has been since it was last taken.
type peak struct{ now, most atomic.Int64 }

func (p *peak) add(n int64) {
	now := p.now.Add(n)
	for {
		most := p.most.Load()
		if now <= most || p.most.CompareAndSwap(most, now) {
			return
		}
	}
}

func (p *peak) take() int64 { return max(p.most.Swap(p.now.Load()), p.now.Load()) }

// moment is a column of the overload's charts: the report of the clients, and
// the state of the server when it reads the report.
type moment struct {
	Strategy string       `json:"strategy"`
	InFlight int64        `json:"inFlight"` // most in the handler
	Limit    int          `json:"limit"`    // 0: none
	Waiting  int64        `json:"waiting"`  // clients
	Answers  [answers]int `json:"answers"`  // good, late, rejected, gave up
	P50      float64      `json:"p50"`      // milliseconds, of served requests
	P99      float64      `json:"p99"`
}

const (
	moments  = 120     // kept, 30 s
	anyLimit = 1 << 20 // and above: the strategy sees no reason for a limit
)

// meter keeps the last moments.
type meter struct {
	mu    sync.Mutex
	kept  [moments]moment
	taken int // from the beginning
}

func (m *meter) add(now moment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[m.taken%moments] = now
	m.taken++
}

// since returns the moments from the given one, as far as they are kept, and
// the number of the next.
func (m *meter) since(from int) ([]moment, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []moment{}
	for i := max(from, m.taken-moments); i < m.taken; i++ {
		list = append(list, m.kept[i%moments])
	}
	return list, m.taken
}

// percentile of sorted times, in milliseconds; 0 if there are none.
func percentile(sorted []time.Duration, p int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := sorted[min(len(sorted)*p/100, len(sorted)-1)]
	return float64(at/(10*time.Microsecond)) / 100
}
