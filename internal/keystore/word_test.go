package keystore

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/interleave"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

type words = Store[int64, struct{}]

func newWords(maxKeys int, evict bool) *words {
	s := new(words)
	s.Init(Config{MaxKeys: maxKeys, Evict: evict}, nil)
	return s
}

// charge adds cost ticks to the debt of key and returns the word.
func charge(s *words, key string, at, cost int64) (word int64, r Result) {
	_, r = s.Update(key, at, func(st State[int64], now int64) (int64, int64, bool) {
		word = max(st.State, now) + cost
		return word, 0, true
	})
	return word, r
}

// at is now for every key.
func at(now int64) func(uint64) int64 { return func(uint64) int64 { return now } }

func load(s *words, key string) (word int64) {
	s.Update(key, 1, func(st State[int64], _ int64) (int64, int64, bool) {
		word = st.State
		return 0, 0, false
	})
	return word
}

func TestSizes(t *testing.T) {
	if strconv.IntSize == 64 {
		require.EqualValues(t, 64, unsafe.Offsetof(segment[[9]int]{}.mu), "what insertions write has a cache line of its own")
		require.EqualValues(t, 128, unsafe.Sizeof(segment[[9]int]{}), "two cache lines")
	}
	require.EqualValues(t, 9472, unsafe.Sizeof(slot{})*mostGroups*groupSize, "a size class of the allocator")
	require.LessOrEqual(t, unsafe.Sizeof(words{}), uintptr(256), "another one, aligned")
}

// TestUpdateOfASlotThatChangedHands: a charge that was computed for the old key
// is not charged to the new one, even where their words are equal.
func TestUpdateOfASlotThatChangedHands(t *testing.T) {
	s := newWords(4, true)
	now := s.Clock.Now()
	word, _ := charge(s, "old", now, 1<<40)
	old := s.keys.hash("old")
	taken := s.keys.segment(old).find(old)
	tries := 0
	_, r := s.Update("old", now, func(st State[int64], _ int64) (int64, int64, bool) {
		if tries++; tries == 1 {
			taken.id.Store(s.keys.hash("new"))
		}
		return st.State + 50, 0, true
	})
	require.Equal(t, Updated, r)
	require.Equal(t, 2, tries)
	require.Equal(t, word, taken.word.Load(), "the new key has its word back")
	require.EqualValues(t, 50, load(s, "old"), "the old key has a slot of its own")
}

// TestL1_KeyThatMovesAfterItsCharge: a key whose segment splits right after its word was swapped is
// not charged again, although its slot has another id.
func TestL1_KeyThatMovesAfterItsCharge(t *testing.T) {
	s := newWords(1<<20, true)
	now := s.Clock.Now()
	moves := "" // to the new segment
	for i := range 100 {
		if key := strconv.Itoa(i); s.keys.hash(key)>>63 == 1 {
			moves = key
		}
		charge(s, strconv.Itoa(i), now, 1<<40)
	}
	word, id := load(s, moves), s.keys.hash(moves)
	old, points, tries := s.keys.segment(id).find(id), 0, 0
	interleave.Hook = func() {
		if points++; points == 2 { // in restore: the swap was made in time
			interleave.Hook = nil
			old.id.Store(id)
			splitFirst(s)
		}
	}
	t.Cleanup(func() { interleave.Hook = nil })
	s.Update(moves, now, func(st State[int64], _ int64) (int64, int64, bool) {
		tries++
		old.id.Store(0)
		return st.State + 50, 0, true
	})
	require.Equal(t, 1, tries)
	require.Equal(t, word+50, load(s, moves))
}

// TestWordsCountExactly: charges of many goroutines to few keys add up, while
// other keys come and go.
func TestWordsCountExactly(t *testing.T) {
	yieldOften(t)
	for range max(cases.Count(100, 5000), 20) {
		s := newWords(64, true)
		now := s.Clock.Now()
		var group sync.WaitGroup
		for g := range 8 {
			group.Go(func() {
				for i := range 40 {
					charge(s, strconv.Itoa(i%5), now, 1<<40)
					charge(s, "", now, 1<<40)
					charge(s, "short"+strconv.Itoa(g*40+i), now, 1)
				}
			})
		}
		group.Wait()
		for k := range 5 {
			require.Equal(t, int64(64)<<40, load(s, strconv.Itoa(k))>>40<<40)
		}
		require.Equal(t, int64(320)<<40, load(s, "")>>40<<40)
	}
}

// TestWordsFull: without room a new key is turned away.
func TestWordsFull(t *testing.T) {
	const hour = int64(time.Hour) * TicksPerNano
	s := newWords(1, false)
	now := s.Clock.Now()
	for i := range 200 {
		charge(s, strconv.Itoa(i), now, hour)
	}
	require.Equal(t, 16, s.Len(at(now)))
	_, r := charge(s, "new", now, hour)
	require.Equal(t, Full, r)
	require.Positive(t, s.Overflowed())
	require.False(t, s.HasRoom("new", now))
	require.True(t, s.HasRoom("", now))
	require.LessOrEqual(t, s.RoomAfter("new", now), hour+int64(time.Second)*TicksPerNano)
}

// TestM2_EvictsTheNextToExpire: without room a new key takes the slot of the one
// that would expire first in its two groups, whose charges cannot be refunded any
// more. So a key is never evicted while it has more debt than 15 others.
func TestM2_EvictsTheNextToExpire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newWords(rapid.SampledFrom([]int{1, 20, 500}).Draw(t, "keys"), true)
		now := s.Clock.Now()
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for i := range 2000 {
			charge(s, strconv.Itoa(i), now, 1<<50+rnd.Int64N(1<<50))
		}
		for i := range 20 {
			key := "new" + strconv.Itoa(i)
			load(s, key) // a look takes no slot
			id := s.keys.hash(key)
			g := s.keys.segment(id)
			evicted := g.nextExpiry(id)
			if evicted < now {
				continue // there is room
			}
			before, full := words16(g, id), s.Overflowed()
			word, r := charge(s, key, now, 1<<49)
			require.Equal(t, Evicted, r)
			require.Equal(t, full+1, s.Overflowed())
			require.Equal(t, sorted(append(before[1:], word)), words16(g, id))
			require.Equal(t, evicted, before[0])
		}
	})
}

// words16 are the words in the two groups of id, sorted.
func words16(g *segment[struct{}], id uint64) (words []int64) {
	a, b := g.candidates(id)
	for _, first := range []uint64{a, b} {
		for i := range groupSize {
			words = append(words, g.slots[int(first)+i].word.Load())
		}
	}
	return sorted(words)
}

func sorted(words []int64) []int64 {
	slices.Sort(words)
	return words
}

// TestEvictedChargesAreNotRefunded: the key may have spent something new.
func TestEvictedChargesAreNotRefunded(t *testing.T) {
	s := newWords(1, true)
	mark := int64(-1)
	s.Update("old", Fresh, func(st State[int64], now int64) (int64, int64, bool) {
		mark = st.Mark
		return now + 1<<40, 0, true
	})
	for i := range 100 {
		charge(s, strconv.Itoa(i), s.Clock.Now(), 1<<50)
	}
	charge(s, "old", s.Clock.Now(), 1<<51)
	s.Refund("old", mark, 1<<40, func(State[int64], int64, int64) (int64, int64, int64, bool) {
		t.Error("the charge was evicted")
		return 0, 0, 0, false
	})
}

// TestInitialWord: every key begins with it, with and without a slot.
func TestInitialWord(t *testing.T) {
	s := newWords(1, true)
	s.SetInitial(1 << 30)
	for _, key := range []string{"", "k"} {
		require.EqualValues(t, 1<<30, load(s, key))
	}
}

// TestDenialsWriteNothing: an update that changes nothing leaves no trace, and
// does not take a slot.
func TestDenialsWriteNothing(t *testing.T) {
	s := newWords(4, true)
	for i := range 1000 {
		load(s, strconv.Itoa(i))
	}
	require.Zero(t, s.Len(at(1)))
	require.Zero(t, s.Overflowed())
}

// TestAbsentKeyGetsAFreshReading: the caller's reading may be from before a
// word of the same key that has expired and was evicted since.
func TestAbsentKeyGetsAFreshReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWords(4, true)
		old := s.Clock.Now()
		time.Sleep(time.Second)
		now, _ := s.Update("new", old, func(st State[int64], now int64) (int64, int64, bool) { return now + 100, 0, true })
		require.Equal(t, s.Clock.Now(), now)
		now, _ = s.Update("new", old, func(State[int64], int64) (int64, int64, bool) { return 0, 0, false })
		require.Equal(t, s.Clock.Now(), now, "a denial is not older than the state")
		now, _ = s.Update("new", old, func(st State[int64], _ int64) (int64, int64, bool) { return st.State + 1, 0, true })
		require.Equal(t, old, now, "a live key knows its own past")
		now, _ = s.Update("new", Fresh, func(State[int64], int64) (int64, int64, bool) { return 0, 0, false })
		require.Equal(t, s.Clock.Now(), now)
	})
}

// TestRefundAccount: a charge moves towards the present by the sum of the
// refunds since; an invalidation ends the refunds of earlier charges; and the
// counters of the account never overflow.
func TestRefundAccount(t *testing.T) {
	for _, key := range []string{"", "k"} {
		s := newWords(4, true)
		charge(s, key, s.Clock.Now(), 1<<50)
		mark := func() (mark int64) {
			s.Update(key, 1, func(st State[int64], _ int64) (int64, int64, bool) {
				mark = st.Mark
				return 0, 0, false
			})
			return mark
		}
		take := func(ticks, wantShift int64) func(s State[int64], now, shift int64) (int64, int64, int64, bool) {
			return func(s State[int64], now, shift int64) (int64, int64, int64, bool) {
				require.Equal(t, wantShift, shift)
				return s.State - ticks, 0, ticks, ticks > 0
			}
		}
		first, word := mark(), load(s, key)
		s.Refund(key, first, 1000, take(700, 0))
		require.Equal(t, word-700, load(s, key))
		s.Refund(key, first, 1000, take(1000, 700))
		s.Refund(key, first, 1000, take(0, 1700))
		require.Equal(t, word-1700, load(s, key))

		s.Update(key, Fresh, func(st State[int64], _ int64) (int64, int64, bool) {
			require.True(t, st.Valid(first))
			st.Invalidate()
			require.False(t, st.Valid(first))
			return 0, 0, false
		})
		s.Refund(key, first, 1000, func(st State[int64], _, _ int64) (int64, int64, int64, bool) {
			t.Error("the charge was invalidated")
			return st.State, 0, 0, false
		})
		for range 40 { // 2^66 ticks in all
			const most = 1<<61 - 1<<55
			last := mark()
			charge(s, key, s.Clock.Now(), 1<<61)
			word := load(s, key)
			s.Refund(key, last, most, take(most, 0))
			require.Equal(t, word-most, load(s, key))
			s.Update(key, Fresh, func(_ State[int64], now int64) (int64, int64, bool) { return now + 1<<50, 0, true })
		}
	}
}

// TestRefundBesideAnEviction: a refund to a key that is evicted at the same moment
// never lowers the word of the key that has its slot, even where the words are equal.
func TestRefundBesideAnEviction(t *testing.T) {
	s := newWords(4, true)
	now := s.Clock.Now()
	word, _ := charge(s, "old", now, 1<<40)
	taken := s.keys.segment(0).find(s.keys.hash("old"))
	var lowest atomic.Int64
	lowest.Store(word)
	points := 0
	interleave.Hook = func() {
		if points++; points == 1 { // evicted between the reading and the swap
			taken.id.Store(s.keys.hash("new"))
		}
		lowest.Store(min(lowest.Load(), taken.word.Load()))
	}
	t.Cleanup(func() { interleave.Hook = nil })
	s.Refund("old", 0, 1<<39, func(st State[int64], _, _ int64) (int64, int64, int64, bool) {
		if st.State != word {
			return 0, 0, 0, false
		}
		return word - 1<<39, 0, 1 << 39, true
	})
	interleave.Hook = nil
	require.Positive(t, points)
	require.Equal(t, word, lowest.Load(), "the new key could have spent the refund of the old one")
	require.Equal(t, word, load(s, "new"))
}

// TestInvalidateConcernsOneKey: the refunds of other keys stay valid, as long as no
// more than some keys of the stripe are invalidated.
func TestInvalidateConcernsOneKey(t *testing.T) {
	var a account
	before := a.done.Load()
	for range 100 {
		a.invalidate(7)
	}
	require.False(t, a.valid(7, before))
	require.True(t, a.valid(8, before))
	require.True(t, a.valid(7, a.done.Load()))
	for id := range uint64(recentKeys) {
		a.invalidate(id + 100)
	}
	require.False(t, a.valid(7, before), "the oldest of many concerns all keys")
	require.False(t, a.valid(8, before))
	require.True(t, a.valid(8, a.done.Load()))
	require.False(t, a.valid(100, before))

	var own account // of the empty key, which has no others
	own.invalidate(0)
	require.False(t, own.valid(0, 0))
	require.True(t, own.valid(0, own.done.Load()))
}
