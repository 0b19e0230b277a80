package strategy

import (
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive/internal/window"
	"github.com/sluice-go/sluice/algo"
)

const (
	hangsAfter     = int64(time.Second)
	hangsBaselines = 5
)

// stall detects that no work completes although new work begins, as when a dependency hangs. Fewer
// than learningFloor requests show nothing.
//
// Unsuccessful work that took as long as a hang has not completed: its client or a timeout ended
// it. Canceled work has not even begun.
type stall struct {
	began, ended, canceled atomic.Int64 // requests
	longest                atomic.Int64 // time from which it hangs, ns
	wanted                 atomic.Int64 // slots that the last denied work would have taken

	// The caller of hangs and probe guards the fields below.
	lastBegan, lastEnded int64         // as of the last completion
	standing             window.Lowest // in flight at completions: streams and the like
	since                int64         // the first begin since then, 0: none
	probed, probedBegan  int64         // instant of the last probe, and the work that had begun by then
}

// finish counts the end of work. An idle service does not hang.
func (s *stall) finish(rtt, inFlight int64, o algo.Outcome) {
	switch {
	case o == algo.Succeeded, inFlight <= 0:
		s.ended.Add(1)
	case rtt >= s.longest.Load():
	case o.Result() == algo.Canceled:
		s.canceled.Add(1)
	default:
		s.ended.Add(1)
	}
}

// wants records the slots of denied work: a probe needs room for it.
func (s *stall) wants(n int64) {
	if s.wanted.Load() != n {
		s.wanted.Store(n)
	}
}

// hangs reports whether work has been beginning for five baselines, at least 1 s, without a
// completion.
func (s *stall) hangs(at, inFlight, baseline int64) bool {
	longest := max(hangsAfter, hangsBaselines*baseline)
	s.longest.Store(longest)
	began, ended := s.notCanceled(), s.ended.Load()
	if ended != s.lastEnded {
		s.lastBegan, s.lastEnded, s.since = began, ended, 0
		s.standing.Add(at, float64(inFlight))
	}
	switch {
	case began <= s.lastBegan:
		s.since = 0
	case s.since == 0:
		s.since = at
	}
	hung := min(inFlight-int64(s.standing.Value()), began-s.lastBegan)
	return hung >= learningFloor && at-s.since > longest
}

// probe reports whether one more request may be admitted to see whether it completes:
// one a second, or until one has begun and was not canceled.
func (s *stall) probe(at int64) bool {
	began := s.notCanceled()
	if at-s.probed < coolDown && began > s.probedBegan {
		return false
	}
	s.probed, s.probedBegan = at, began
	return true
}

// notCanceled returns the number of requests that have begun, without canceled ones.
func (s *stall) notCanceled() int64 { return s.began.Load() - s.canceled.Load() }
