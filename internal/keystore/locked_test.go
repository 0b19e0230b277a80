package keystore

import (
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/interleave"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// pair is a value of two words that must always be equal.
type pair struct{ a, b int64 }

// newPairs makes a store whose clock has not begun, so that the instants of the
// tests count.
func newPairs(maxKeys int, evict bool) *Store[*pair, pair] {
	s := new(Store[*pair, pair])
	s.Init(Config{MaxKeys: maxKeys, Evict: evict}, nil)
	s.Clock = Clock{Start: time.Now().Add(time.Hour)}
	return s
}

// add counts one up under key and returns the count, 0 if there was no room.
func add(t require.TestingT, s *Store[*pair, pair], key string, now, lives int64) (count int64) {
	s.Update(key, now, func(st State[*pair], at int64) (*pair, int64, bool) {
		v := *st.State
		require.Equal(t, v.a, v.b, "a torn value")
		*st.State = pair{v.a + 1, v.b}
		interleave.Point()
		st.State.b++
		count = v.a + 1
		return st.State, at + lives, true
	})
	return count
}

// fill puts a count of one into every slot of a small table, and returns the
// keys.
func fill(s *Store[*pair, pair], prefix string, now, lives int64) (keys []string) {
	for i := 0; len(keys) < 16; i++ {
		key := prefix + strconv.Itoa(i)
		if s.keys.hasFreeSlot(key, now) {
			s.Update(key, now, func(st State[*pair], at int64) (*pair, int64, bool) {
				*st.State = pair{1, 1}
				return st.State, at + lives, true
			})
			keys = append(keys, key)
		}
	}
	return keys
}

func (t *table[V]) hasFreeSlot(key string, now int64) bool {
	id := t.hash(key)
	g := t.segment(id)
	return t.mayGrow(g) || g.nextExpiry(id) < now
}

func yieldOften(t *testing.T) {
	var calls atomic.Uint64
	interleave.Hook = func() {
		if calls.Add(1)%3 == 0 {
			runtime.Gosched()
		}
	}
	t.Cleanup(func() { interleave.Hook = nil })
}

func TestLockedKeepsKeysApart(t *testing.T) {
	s := newPairs(100, true)
	for round := range int64(3) {
		for i := range 50 {
			require.Equal(t, round+1, add(t, s, strconv.Itoa(i), 1000, 1000))
		}
		require.Equal(t, round+1, add(t, s, "", 1000, 1000))
	}
	require.Equal(t, 50, s.Len(at(2000)))
	require.Equal(t, 0, s.Len(at(2001)))
	require.Zero(t, s.Overflowed())
}

func TestLockedEvictsExpiredValuesOnly(t *testing.T) {
	s := newPairs(1, true) // 16 slots
	for _, key := range fill(s, "", 1000, 1000) {
		require.Equal(t, int64(2), add(t, s, key, 2000, 0), "live at its expiry")
	}
	require.Equal(t, int64(1), add(t, s, "new", 2001, 1000))
	require.Zero(t, s.Overflowed())
	require.Equal(t, 1, s.Len(at(2001)))
}

// Without room a new key takes the slot of the one that would expire first, and
// begins afresh. An update without a change evicts no key.
func TestLockedEvictsTheNextToExpire(t *testing.T) {
	s := newPairs(1, true)
	keys := fill(s, "", 1000, 1000)
	for _, key := range keys[1:] {
		add(t, s, key, 1000, 5000)
	}
	s.Update("new", 1000, func(State[*pair], int64) (*pair, int64, bool) { return nil, 0, false })
	require.Zero(t, s.Overflowed())
	for i := 0; s.Overflowed() == 0; i++ { // one whose groups hold the first key
		require.Equal(t, int64(1), add(t, s, "new"+strconv.Itoa(i), 1000, 9000))
	}
	require.Equal(t, 16, s.Len(at(2001)))
	for _, key := range keys[1:] {
		require.Equal(t, int64(3), add(t, s, key, 1000, 9000))
	}
	require.Equal(t, uint64(1), s.Overflowed())
}

func TestLockedFull(t *testing.T) {
	s := newPairs(1, false)
	known := fill(s, "", 1000, 1000)[3]
	_, r := s.Update("new", 1500, func(State[*pair], int64) (*pair, int64, bool) { return nil, 9000, true })
	require.Equal(t, Full, r)
	require.False(t, s.HasRoom("new", 1500))
	require.Equal(t, int64(501), s.RoomAfter("new", 1500))
	require.Equal(t, int64(2), add(t, s, known, 1500, 1000), "nothing stayed locked")
	require.Equal(t, int64(1), add(t, s, "new", 2001, 1000))
}

func TestLockedUnchangedValueLeavesNothingBehind(t *testing.T) {
	unchanged := func(State[*pair], int64) (*pair, int64, bool) { return nil, 0, false }
	s := newPairs(1, true)
	for i := range 1000 {
		s.Update(strconv.Itoa(i), 1000, unchanged)
	}
	require.Equal(t, 0, s.Len(at(1)))
	add(t, s, "k", 1000, 1000)
	s.Update("k", 1500, unchanged)
	require.Equal(t, 1, s.Len(at(2000)))
	require.Equal(t, int64(2), add(t, s, "k", 1500, 1000))
}

// A caller whose reading is late must not spend a second time in the past of
// a value that was evicted: an absent key is decided on at a fresh reading.
func TestLockedLateReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newPairs(1, true)
		s.Clock = StartClock(nil)
		unchanged := func(State[*pair], int64) (*pair, int64, bool) { return nil, 0, false }
		evicted := fill(s, "", s.Clock.Now(), 1000)[3]
		late := s.Clock.Now()
		time.Sleep(time.Second)
		known := fill(s, "other", s.Clock.Now(), 1000)[3]
		now, _ := s.Update(evicted, late, unchanged)
		require.Equal(t, s.Clock.Now(), now)
		now, _ = s.Update(known, late, func(st State[*pair], at int64) (*pair, int64, bool) { return st.State, at + 1<<40, true })
		require.Equal(t, late, now, "a live key knows its own past")
		now, _ = s.Update(known, late, unchanged)
		require.Equal(t, s.Clock.Now(), now, "a denial is not older than the state")
		now, _ = s.Update(known, Fresh, unchanged)
		require.Equal(t, s.Clock.Now(), now)
	})
}

// Many goroutines on few slots: no count is lost, none is torn, and a key never
// counts further than it was counted.
func TestLockedCrowd(t *testing.T) {
	yieldOften(t)
	for range max(cases.Count(200, 5000), 40) {
		s := newPairs(1, true)
		var now, unkeyed atomic.Int64
		now.Store(1000)
		var group sync.WaitGroup
		for g := range 8 {
			group.Go(func() {
				for i := range 30 {
					add(t, s, strconv.Itoa((g*i)%40), now.Add(int64(i%3)), 20)
					unkeyed.Add(1)
					add(t, s, "", now.Load(), 20)
				}
			})
		}
		group.Wait()
		require.Equal(t, unkeyed.Load()+1, add(t, s, "", now.Load(), 20))
		now.Add(1000)
		require.Equal(t, 0, s.Len(at(now.Load())), "nothing stayed locked")
	}
}

// While all keys are live the count of each key is exact.
func TestLockedCountsExactly(t *testing.T) {
	yieldOften(t)
	for range max(cases.Count(200, 5000), 40) {
		s := newPairs(64, true)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for i := range 40 {
					add(t, s, strconv.Itoa(i%5), 1000, 1000)
				}
			})
		}
		group.Wait()
		for k := range 5 {
			require.Equal(t, int64(65), add(t, s, strconv.Itoa(k), 1000, 1000))
		}
	}
}

// A value whose memory is worth keeping is copied, not assigned.
func TestLockedInherit(t *testing.T) {
	s := new(Store[*[]int, []int])
	s.Init(Config{MaxKeys: 1, Evict: true}, func(heir, from *[]int) { *heir = append((*heir)[:0], *from...) })
	kept := 0
	for i := range 100 {
		s.Update(strconv.Itoa(i), s.Clock.Now(), func(st State[*[]int], _ int64) (*[]int, int64, bool) {
			require.Empty(t, *st.State)
			kept = max(kept, cap(*st.State))
			*st.State = append(*st.State, i)
			return nil, 1, true
		})
	}
	require.Positive(t, kept)
}
