package keystore

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/interleave"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestL1_GrowthLosesNoCharge: while many goroutines charge old keys and add new
// ones, the table grows, and the state of each key is exactly the sum of its
// charges.
func TestL1_GrowthLosesNoCharge(t *testing.T) {
	yieldOften(t)
	const each = 200
	for range cases.Count(3, 100) {
		words, pairs := newWords(1<<20, true), newPairs(1<<20, true)
		now := words.Clock.Now()
		name := func(g, i int) string { return strconv.Itoa(i%20) + "/" + strconv.Itoa(g%2*each+i) }
		var group sync.WaitGroup
		for g := range 8 {
			group.Go(func() {
				for i := range each {
					for _, key := range []string{name(g, i), "shared", strconv.Itoa(i % 7), "own" + strconv.Itoa(g*each+i)} {
						charge(words, key, now, 1<<40)
						add(t, pairs, key, now, 1<<40)
					}
				}
			})
		}
		group.Wait()
		require.Positive(t, words.keys.segment(1).depth, "it has grown")
		require.Equal(t, int64(8*each), load(words, "shared")>>40)
		require.Equal(t, int64(8*each+1), add(t, pairs, "shared", now, 1))
		for g := range 2 {
			for i := range each {
				require.Equal(t, int64(4), load(words, name(g, i))>>40)
				require.Equal(t, int64(5), add(t, pairs, name(g, i), now, 1))
			}
		}
	}
}

// TestM1_TableGrowsToItsBound: memory follows the keys up to MaxKeys, of which
// all have room, and no further.
func TestM1_TableGrowsToItsBound(t *testing.T) {
	const maxKeys = 1 << 15
	s := newWords(maxKeys, true)
	now, before := s.Clock.Now(), heapInUse()
	charge(s, "first", now, 1<<60)
	require.Less(t, heapInUse()-before, int64(32<<10), "for one key")
	for i := range maxKeys - 1 {
		charge(s, strconv.Itoa(i), now, 1<<59)
		if i == 1000 {
			require.Less(t, heapInUse()-before, int64(100<<10), "for a thousand keys")
		}
	}
	require.LessOrEqual(t, s.Overflowed(), uint64(1), "MaxKeys keys have room")
	require.GreaterOrEqual(t, s.Len(at(now)), maxKeys-1)
	grown := heapInUse() - before
	require.Less(t, grown, int64(maxKeys*43))
	for i := range max(cases.Count(4*maxKeys, 4*maxKeys), maxKeys) {
		charge(s, "flood"+strconv.Itoa(i), now, 1<<50)
	}
	full := heapInUse() - before
	require.Less(t, full, int64(maxKeys*43))
	require.Equal(t, int64(1)<<60, load(s, "first")>>60<<60, "a key with much debt keeps its slot")
	t.Logf("M1: %d keys: %d B each, %d at most", maxKeys, grown/maxKeys, full/maxKeys)
}

// TestExpiredKeyKeepsItsSlotForASecond: a key that comes back is not inserted again.
// Then another key takes the slot, and the table does not grow.
func TestExpiredKeyKeepsItsSlotForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, full := newWords(1<<20, true), newWords(16, false)
		round := func(name string) {
			for i := range 1000 {
				key := name + strconv.Itoa(i)
				charge(s, key, s.Clock.Now(), TicksPerNano)
				charge(full, key, full.Clock.Now(), TicksPerNano)
				time.Sleep(500 * time.Microsecond)
			}
			for i := range 1000 {
				require.True(t, s.Has(name+strconv.Itoa(i)))
			}
		}
		for i := range 10 {
			round(strconv.Itoa(i) + "/")
			time.Sleep(time.Second)
		}
		require.Less(t, s.keys.segment(1).depth, uint8(4), "8 segments of 592 slots are plenty for 1000 keys")
		require.Zero(t, full.Overflowed(), "a table that cannot grow takes the slots at once")
	})
}

// TestL1_KeyThatMovesIsFound: a lookup of a key that moves to another segment
// waits for it.
func TestL1_KeyThatMovesIsFound(t *testing.T) {
	s := newWords(1<<20, true)
	now := s.Clock.Now()
	for i := range 200 {
		charge(s, strconv.Itoa(i), now, 1<<40)
	}
	found := make(chan int64, 200)
	moves := 0
	interleave.Hook = func() {
		if key := strconv.Itoa(moves); moves < 200 {
			moves++
			go func() { found <- load(s, key) }()
			runtime.Gosched()
		}
	}
	t.Cleanup(func() { interleave.Hook = nil })
	splitFirst(s)
	interleave.Hook = nil
	for range moves {
		require.GreaterOrEqual(t, <-found, now+1<<40)
	}
	require.Positive(t, moves)
}

// TestL1_InsertionAfterASplit: a key that was found to be absent in one segment
// is not inserted there when it belongs to another one by now.
func TestL1_InsertionAfterASplit(t *testing.T) {
	s := newWords(1<<20, true)
	for i := range 100 {
		now := s.Clock.Now()
		key := strconv.Itoa(i)
		tries := 0
		s.Update(key, now, func(State[int64], int64) (int64, int64, bool) {
			if tries++; tries == 1 {
				splitFirst(s)
			}
			return now + 1<<40, 0, true
		})
		require.GreaterOrEqual(t, load(s, key), now+1<<40)
		s = newWords(1<<20, true)
	}
}

// splitFirst splits the first segment of s.
func splitFirst(s *words) {
	g := s.keys.segment(0)
	g.mu.Lock()
	defer g.mu.Unlock()
	s.keys.split(g, 0)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
