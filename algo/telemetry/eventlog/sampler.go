package eventlog

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
)

// subject identifies the lines that are sampled together.
type subject struct {
	topic  topic
	policy string
	key    uint64
}

// sample counts the events of a subject in its interval.
type sample struct {
	subject
	transport telemetry.Transport
	client    bool
	reason    algo.Reason // this and the cause are of the latest event
	cause     algo.Cause
	begin     time.Duration
	count     int64 // events since the last line
	before    int32 // neighbors in the order of begin
	after     int32
}

// sampler has a slot for each subject with an interval that is not over. All
// intervals have the same length, so the slots in order of begin are in order of
// end. One more slot counts all subjects that have no slot.
type sampler struct {
	interval time.Duration
	due      atomic.Int64 // end of the first interval, read without the lock

	mu    sync.Mutex
	find  map[subject]int32
	slots []sample // 0 is the head of the ring of used slots
	free  []int32
}

func newSampler(interval time.Duration, most int) *sampler {
	s := &sampler{interval: interval, find: make(map[subject]int32, most+1), slots: make([]sample, most+2)}
	for i := most + 1; i > 0; i-- {
		s.free = append(s.free, int32(i))
	}
	s.due.Store(math.MaxInt64)
	return s
}

// add counts an event and reports whether to write it at once, as which subject,
// and with how many earlier events that are not written yet.
func (s *sampler) add(now time.Duration, e sample) (as subject, before int64, write bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, known := s.find[e.subject]
	if !known && s.full() {
		e.subject = subject{topic: others}
		i, known = s.find[e.subject]
	}
	if known && now-s.slots[i].begin < s.interval {
		at := &s.slots[i]
		at.count++
		at.transport, at.client, at.reason, at.cause = e.transport, e.client, e.reason, e.cause
		return e.subject, 0, false
	}
	if known {
		before = s.slots[i].count
		s.remove(i)
	}
	e.begin = now
	s.insert(e)
	return e.subject, before, true
}

// full reports whether only the shared slot is left.
func (s *sampler) full() bool {
	_, used := s.find[subject{topic: others}]
	return len(s.free) == 0 || len(s.free) == 1 && !used
}

// expired removes a subject with an expired interval, or any subject if all is
// true. It returns false if there is none. The count may be 0.
func (s *sampler) expired(now time.Duration, all bool) (sample, bool) {
	if int64(now) < s.due.Load() && !all {
		return sample{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.slots[0].after
	if i == 0 || (!all && now-s.slots[i].begin < s.interval) {
		return sample{}, false
	}
	found := s.slots[i]
	s.remove(i)
	return found, true
}

// insert puts e in a free slot, at the end of the ring.
func (s *sampler) insert(e sample) {
	i := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	last := s.slots[0].before
	e.before, e.after = last, 0
	s.slots[i] = e
	s.slots[last].after, s.slots[0].before = i, i
	s.find[e.subject] = i
	s.announce()
}

func (s *sampler) remove(i int32) {
	e := &s.slots[i]
	s.slots[e.before].after, s.slots[e.after].before = e.after, e.before
	delete(s.find, e.subject)
	*e = sample{}
	s.free = append(s.free, i)
	s.announce()
}

// announce publishes the end of the first interval to readers without the lock.
func (s *sampler) announce() {
	due := int64(math.MaxInt64)
	if i := s.slots[0].after; i != 0 {
		due = int64(s.slots[i].begin + s.interval)
	}
	s.due.Store(due)
}
