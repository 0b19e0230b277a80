package adaptive

import (
	"strings"
	"sync"
	"sync/atomic"
)

// estimate is the limit of a strategy that learns from each sample. A sample
// that arrives while another is being learnt from is skipped: no request ever
// waits for a statistic, and a sample more or less changes nothing.
type estimate struct {
	name     string
	min, max float64
	word     atomic.Int64 // what Limit answers

	mu    sync.Mutex
	value float64
}

// init begins at the initial limit of s. The constructor's name less "New" is
// the strategy's.
func (e *estimate) init(constructor string, s *settings, usual int) error {
	start, err := s.start(constructor, usual)
	if err != nil {
		return err
	}
	e.name = strings.ToLower(strings.TrimPrefix(constructor, "New"))
	e.min, e.max = float64(s.min), float64(s.max)
	e.set(float64(start))
	return nil
}

func (e *estimate) set(v float64) {
	e.value = min(max(v, e.min), e.max)
	e.word.Store(int64(e.value))
}

func (e *estimate) Limit() int   { return int(e.word.Load()) }
func (e *estimate) ceiling() int { return int(e.max) }
func (e *estimate) state() State { return State{Name: e.name, Limit: e.Limit()} }

// unused reports whether less than half of the limit was in flight: then the
// sample says nothing about whether more would be too much.
func (e *estimate) unused(s Sample) bool { return float64(s.InFlight)*2 < e.value }
