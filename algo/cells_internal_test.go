package algo

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
)

// pairs is a state of two words that must always be equal.
type pairs struct{ a, b int64 }

// newPairs makes cells whose clock has not begun, so that the instants of the
// tests count.
func newPairs(maxKeys int, p FullPolicy) *cells[pairs] {
	c := new(cells[pairs])
	c.init(Spec{MaxKeys: int64(maxKeys), OnFull: p})
	c.clock = clock{time.Now().Add(time.Hour)}
	return c
}

// add counts one up under key and returns the count.
func add(t require.TestingT, c *cells[pairs], key string, now, lives int64) int64 {
	h, at := c.lock(key, now)
	require.NotNil(t, h.value)
	v := *h.value
	require.Equal(t, v.a, v.b, "a torn state")
	*h.value = pairs{v.a + 1, v.b}
	interleave.Point()
	h.value.b++
	h.unlock(at + lives)
	return v.a + 1
}

// fill puts a count of one into every slot of a small table, and returns the
// keys. (A key that finds its own groups full is passed over.)
func fill(t require.TestingT, c *cells[pairs], prefix string, now, lives int64) (keys []string) {
	for i := 0; len(keys) < 16; i++ {
		key := prefix + strconv.Itoa(i)
		h, at := c.lock(key, now)
		if h.value == nil || h.at == nil {
			if h.value != nil {
				h.leave()
			}
			continue
		}
		*h.value = pairs{1, 1}
		h.unlock(at + lives)
		keys = append(keys, key)
	}
	c.table().spilled.Store(0)
	return keys
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

func TestCellsKeepKeysApart(t *testing.T) {
	c := newPairs(100, Overflow)
	for round := range int64(3) {
		for i := range 50 {
			require.Equal(t, round+1, add(t, c, strconv.Itoa(i), 1000, 1000))
		}
		require.Equal(t, round+1, add(t, c, "", 1000, 1000))
	}
	require.Equal(t, 50, c.live(2000))
	require.Equal(t, 0, c.live(2001))
	require.Zero(t, c.spilled())
}

func TestCellsForgetAfterExpiryOnly(t *testing.T) {
	c := newPairs(1, Overflow) // 16 slots
	for _, key := range fill(t, c, "", 1000, 1000) {
		require.Equal(t, int64(2), add(t, c, key, 2000, 0), "live at its expiry")
	}
	require.Equal(t, int64(1), add(t, c, "new", 2001, 1000))
	require.Zero(t, c.spilled())
	require.Equal(t, 1, c.live(2001))
}

func TestCellsOverflowIsInherited(t *testing.T) {
	c := newPairs(1, Overflow)
	fill(t, c, "", 1000, 1000)
	for n := range int64(5) {
		require.Equal(t, n+1, add(t, c, "late", 1000, 1000))
	}
	require.Equal(t, uint64(5), c.spilled())
	require.Equal(t, int64(6), add(t, c, "late", 3000, 1000), "what it spent in the crowd stays spent")
	require.Equal(t, int64(7), add(t, c, "late", 3000, 1000))
	require.Equal(t, uint64(5), c.spilled())
}

func TestCellsFullWithoutSharing(t *testing.T) {
	for _, p := range []FullPolicy{DenyNew, AllowNew} {
		c := newPairs(1, p)
		known := fill(t, c, "", 1000, 1000)[3]
		h, _ := c.lock("new", 1500)
		require.Nil(t, h.value)
		require.Equal(t, int64(501), c.soonest("new", 1500))
		require.Equal(t, int64(2), add(t, c, known, 1500, 1000), "nothing stayed locked")
		require.Equal(t, int64(1), add(t, c, "new", 2001, 1000))
	}
}

func TestCellsLeaveNothingBehind(t *testing.T) {
	c := newPairs(1, Overflow)
	for i := range 1000 {
		h, _ := c.lock(strconv.Itoa(i), 1000)
		h.leave()
	}
	require.Equal(t, 0, c.live(1))
	add(t, c, "k", 1000, 1000)
	h, _ := c.lock("k", 1500)
	h.leave()
	require.Equal(t, 1, c.live(2000))
	require.Equal(t, int64(2), add(t, c, "k", 1500, 1000))
}

// A caller whose reading is late must not spend a second time in the past of
// a state that was evicted: an absent key is decided on at a fresh reading.
func TestCellsLateReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPairs(1, Overflow)
		c.clock = startClock()
		evicted := fill(t, c, "", c.clock.now(), 1000)[3]
		late := c.clock.now()
		time.Sleep(time.Second)
		known := fill(t, c, "other", c.clock.now(), 1000)[3]
		h, at := c.lock(evicted, late)
		require.Equal(t, c.clock.now(), at)
		h.leave()
		h, at = c.lock(known, late)
		require.Equal(t, late, at, "a live key knows its own past")
		h.leave()
	})
}

// Many goroutines on few slots: no count is lost, none is torn, and a key never
// counts further than it was counted.
func TestCellsCrowd(t *testing.T) {
	yieldOften(t)
	for range 200 {
		c := newPairs(1, Overflow)
		var now atomic.Int64
		now.Store(1000)
		var own atomic.Int64
		var group sync.WaitGroup
		for g := range 8 {
			group.Go(func() {
				for i := range 30 {
					add(t, c, strconv.Itoa((g*i)%40), now.Add(int64(i%3)), 20)
					own.Add(1)
					add(t, c, "", now.Load(), 20)
				}
			})
		}
		group.Wait()
		require.Equal(t, own.Load()+1, add(t, c, "", now.Load(), 20))
		now.Add(1000)
		require.Equal(t, 0, c.live(now.Load()), "nothing stayed locked")
	}
}

// While all keys are live every key counts exactly what was counted for it.
func TestCellsCountExactly(t *testing.T) {
	yieldOften(t)
	for range 200 {
		c := newPairs(64, Overflow)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for i := range 40 {
					add(t, c, strconv.Itoa(i%5), 1000, 1000)
				}
			})
		}
		group.Wait()
		for k := range 5 {
			require.Equal(t, int64(65), add(t, c, strconv.Itoa(k), 1000, 1000))
		}
	}
}
