package adaptive

import (
	"sync/atomic"
	"time"
)

const (
	hangsAfter     = int64(time.Second)
	hangsBaselines = 5
	causeHang      = "nothing completes"
)

// stall detects that no work completes although new work begins, as when a
// dependency hangs. Fewer than learningFloor pieces of work show nothing.
type stall struct {
	began, ended atomic.Int64 // pieces of work

	// The caller of lasts guards the fields below.
	lastBegan, lastEnded int64 // as of the last completion
	since                int64 // the first begin since then, 0: none
}

// lasts is the time for which work has been beginning and nothing has completed.
func (s *stall) lasts(at, inFlight int64) int64 {
	began, ended := s.began.Load(), s.ended.Load()
	switch {
	case ended != s.lastEnded:
		s.lastBegan, s.lastEnded, s.since = began, ended, 0
	case began > s.lastBegan && s.since == 0:
		s.since = at
	}
	if s.since == 0 || min(inFlight, began-s.lastBegan) < learningFloor {
		return 0
	}
	return at - s.since
}
