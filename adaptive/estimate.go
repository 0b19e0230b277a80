package adaptive

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/internal/machine"
)

// estimate is the limit of a strategy that learns from each sample. A sample that
// arrives while another one is processed is skipped: no request waits for a
// statistic, and one sample more or less changes nothing.
type estimate struct {
	owned
	machine  machine.Machine
	name     string
	min, max float64
	limit    atomic.Int64 // the result of Limit

	mu    sync.Mutex
	value float64
}

// init begins at the first limit of s.
func (e *estimate) init(constructor string, s *settings) error {
	start, err := s.start(constructor, 20)
	if err != nil {
		return err
	}
	e.machine, e.name = s.machine, strings.ToLower(constructor)
	e.min, e.max = float64(s.min), float64(s.max)
	e.set(float64(start))
	return nil
}

func (e *estimate) set(v float64) {
	e.value = min(max(v, e.min), e.max)
	e.limit.Store(int64(e.value))
}

func (e *estimate) Limit() int    { return int(e.limit.Load()) }
func (e *estimate) maxLimit() int { return int(e.max) }
func (e *estimate) state() State  { return State{Name: e.name, Limit: e.Limit()} }

// unused reports whether less than half of the limit was in flight. Such a sample
// does not show whether more would be too much.
func (e *estimate) unused(s Sample) bool { return float64(s.InFlight)*2 < e.value }
