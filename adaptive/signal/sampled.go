package signal

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/machine"
)

const (
	sampleEvery    = 250 * time.Millisecond
	sampleLifetime = 2 * time.Second
)

// sampled limits how often an expensive signal is measured.
type sampled struct {
	threshold
	measure func(at int64) (value float64, ok bool) // never called concurrently

	next     atomic.Int64
	measured atomic.Int64 // instant of the last good sample, 0: none
	level    atomic.Uint64
	busy     sync.Mutex
}

func (s *sampled) Read() (level float64, ok bool) { return s.ReadAt(machine.Real{}.Now()) }

// ReadAt reads the signal at an instant that the caller has already read.
func (s *sampled) ReadAt(at int64) (level float64, ok bool) {
	if at >= s.next.Load() && s.busy.TryLock() {
		s.sample(at)
		s.busy.Unlock()
	}
	measured := s.measured.Load()
	if measured == 0 || at-measured > int64(sampleLifetime) {
		return 0, false
	}
	return math.Float64frombits(s.level.Load()), true
}

func (s *sampled) sample(at int64) {
	if at < s.next.Load() {
		return
	}
	s.next.Store(at + int64(sampleEvery))
	if value, ok := s.measure(at); ok {
		s.level.Store(math.Float64bits(value / s.value))
		s.measured.Store(at)
	}
}

// delta is the growth of a counter between two samples. It is known only if both are recent: over a
// long pause it would average the pause.
type delta struct {
	at    int64
	value float64
	set   bool
}

func (d *delta) next(at int64, value float64) (growth float64, over time.Duration, ok bool) {
	last := *d
	*d = delta{at, value, true}
	over = time.Duration(at - last.at)
	ok = last.set && over > 0 && over <= sampleLifetime && value >= last.value
	return value - last.value, over, ok
}
