package rate

import (
	"sync"
	"time"
)

// Sometimes runs a function now and then: the first time, and whenever one of the fields that
// are not 0 says so. It must not be copied.
type Sometimes struct {
	First    int           // the first calls
	Every    int           // one call of so many, and the first
	Interval time.Duration // after so long without a run

	mu    sync.Mutex
	calls int
	ran   time.Time
}

// Do runs f or not. Calls at the same time run one after another, so f must not call Do.
func (s *Sometimes) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.calls == 0 || s.calls < s.First || s.Every > 0 && s.calls%s.Every == 0
	if due || s.Interval > 0 && time.Since(s.ran) >= s.Interval {
		f()
		s.ran = time.Now()
	}
	s.calls++
}
