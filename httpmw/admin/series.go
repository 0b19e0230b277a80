package admin

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// span is how many seconds are shown. Rings have a few slots more, so that a
// second is not overwritten while it is read.
const (
	span  = 300
	slots = span + 4
)

// The columns of a series: its kinds, then the sources that are not this
// process'.
const (
	fromRemote = int(kinds) + iota
	fromDenyCache
	fromBlock
	fromFallback
	remoteWait // for Redis, in microseconds, of all decisions from there together
	columns
)

var columnOf = [...]int{
	algo.SourceRemote: fromRemote, algo.SourceDenyCache: fromDenyCache, algo.SourceBlock: fromBlock, algo.SourceFallback: fromFallback,
}

// series counts the decisions of one policy in each of the last seconds.
type series struct {
	name string
	// policy is the registered one of this name, nil if there is none.
	policy atomic.Pointer[policy]
	newer  sync.Mutex // serialises the reuse of a slot
	last   atomic.Uint32
	ring   [slots]struct {
		second atomic.Uint32
		n      [columns]atomic.Uint32
	}
}

// add counts a decision. One that comes later than the ring is long is lost.
func (s *series) add(now uint32, k kind, from algo.Source) {
	slot := &s.ring[now%slots]
	if slot.second.Load() != now && !s.reuse(now) {
		return
	}
	slot.n[k].Add(1)
	if int(from) < len(columnOf) {
		if c := columnOf[from]; c > 0 {
			slot.n[c].Add(1)
		}
	}
}

// addWait adds the wait of a decision, which add has counted already.
func (s *series) addWait(now uint32, wait time.Duration) {
	if slot := &s.ring[now%slots]; slot.second.Load() == now {
		slot.n[remoteWait].Add(uint32(min(wait.Microseconds(), 1e6)))
	}
}

// reuse empties the slot of a second that begins.
func (s *series) reuse(now uint32) bool {
	s.newer.Lock()
	defer s.newer.Unlock()
	slot := &s.ring[now%slots]
	if was := slot.second.Load(); was >= now {
		return was == now
	}
	for i := range slot.n {
		slot.n[i].Store(0)
	}
	slot.second.Store(now)
	s.last.Store(max(s.last.Load(), now))
	return true
}

// idle reports whether nothing was counted in the time that is shown.
func (s *series) idle(now uint32) bool { return s.last.Load()+span < now }

// read returns a column from second from until before second to.
func (s *series) read(column int, from, to uint32) []uint32 {
	counts := make([]uint32, 0, to-from)
	for sec := from; sec < to; sec++ {
		var n uint32
		if slot := &s.ring[sec%slots]; slot.second.Load() == sec {
			n = slot.n[column].Load()
		}
		counts = append(counts, n)
	}
	return counts
}

// gauge keeps two values for each of the last seconds.
type gauge struct {
	ring [slots]atomic.Uint64 // the second, and 16 bits for each value
}

const mostGauged = 1<<16 - 1

func (g *gauge) set(now uint32, a, b int) {
	a, b = min(max(a, 0), mostGauged), min(max(b, 0), mostGauged)
	g.ring[now%slots].Store(uint64(now)<<32 | uint64(a)<<16 | uint64(b))
}

// read returns both values from second from until before second to, -1 where
// nothing is known.
func (g *gauge) read(from, to uint32) (a, b []int) {
	a, b = make([]int, 0, to-from), make([]int, 0, to-from)
	for sec := from; sec < to; sec++ {
		v := g.ring[sec%slots].Load()
		if uint32(v>>32) == sec {
			a, b = append(a, int(v>>16&mostGauged)), append(b, int(v&mostGauged))
		} else {
			a, b = append(a, -1), append(b, -1)
		}
	}
	return a, b
}
