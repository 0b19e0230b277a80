package distributed

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// Stats is a snapshot of a store, for dashboards. It does not count decisions
// by origin: the Source of every [algo.Decision] is its origin.
type Stats struct {
	// Phase is the worst node's.
	Phase Phase
	// Percent is the percentage of the calls that go to the worst node: 100
	// while it is healthy, 0 while it is away.
	Percent int
	// Probing is set while a probe checks whether a node is back.
	Probing bool
	// Nodes is the number of nodes, of a Ring those that were asked, and Away the number of those whose breaker is
	// not closed.
	Nodes, Away int
	// RoundTrip and RoundTripP99 are the median and the 99th percentile of the last
	// 128 round trips to the slowest node, late replies included; 0 before the
	// first. A decision is local if its round trip takes longer than Timeout, that of
	// [WithTimeout].
	RoundTrip, RoundTripP99, Timeout time.Duration
	// Instances is the number of instances that share the limits, as known now, or
	// assumed; each has an equal share of every limit while Redis is away. Counted
	// is false until a heartbeat has reached Redis, or WithInstances sets it.
	Instances int
	Counted   bool
	// Fallback is the policy for decisions while Redis is away.
	Fallback Fallback
	// Denied is the number of denied keys in the deny cache, expired ones that
	// were not asked for since included. DeniedMax is its approximate capacity,
	// 0 if it is off.
	Denied, DeniedMax int
	// Kept is the number of corrections, such as releases and refunds, that wait for their
	// node; Lost of those that were given up since the store was made.
	Kept int
	Lost int64
	// Blocks is the number of keys with a prepaid block, or with one lately.
	Blocks int
}

// Far reports that a node which is not healthy does answer, but later than the timeout:
// Redis is far or slow, and not away.
func (s *Stats) Far() bool { return s.Away > 0 && s.RoundTrip > s.Timeout }

// WithoutRedis says in words what decides while Redis is away, and with which share, for logs and pages.
func (s *Stats) WithoutRedis() string {
	switch s.Fallback {
	case FallbackAllow:
		return "nothing: every request is admitted"
	case FallbackDeny:
		return "nothing: every request is denied"
	}
	share := fmt.Sprintf("each limit with a share of 1/%d in this instance", s.Instances)
	if !s.Counted {
		share += fmt.Sprintf(" (%d instances are assumed, none is counted yet)", s.Instances)
	}
	return share
}

// Stats returns a snapshot. It does not wait for Redis. Its parts are read one
// after another and may be a moment apart.
func (s *Store) Stats() Stats {
	known := s.registry.known()
	st := Stats{
		Percent: remote.FullLevel, Timeout: s.timeout,
		Instances: known.count, Counted: s.registry.counted.Load() != nil,
		Fallback: s.fallback, DeniedMax: s.denyCache, Lost: s.remote.Lost(),
	}
	for _, n := range s.remote.Nodes() {
		st.add(n.Level())
		st.Kept += n.Kept()
		median, p99 := n.RoundTrips()
		st.RoundTrip, st.RoundTripP99 = max(st.RoundTrip, median), max(st.RoundTripP99, p99)
	}
	for i := range s.denied.shards {
		st.Denied += s.denied.shards[i].len()
	}
	for _, l := range s.allLimiters() {
		st.Blocks += l.blocks.len()
	}
	return st
}

func (s *Stats) add(level int, probing bool) {
	s.Nodes++
	if level == remote.FullLevel {
		return
	}
	s.Away++
	s.Percent = min(s.Percent, level)
	s.Probing = s.Probing || probing
	if is := phaseOf(level); s.Phase == PhaseClosed || is == PhaseOpen {
		s.Phase = is
	}
}

func (b *blocks) len() (n int) {
	if b == nil {
		return 0
	}
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		n += len(s.keys)
		s.mu.Unlock()
	}
	return n
}
