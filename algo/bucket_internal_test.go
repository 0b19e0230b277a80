package algo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
	"github.com/sluice-go/sluice/internal/interleave"
)

var background = context.Background()

// at is a call to acquireAt: a limiter whose caller read the clock at now.
func at(b *bucket, now int64, key string, n int64) (lease Lease) {
	b.acquireAt(&lease, now, key, n)
	return lease
}

// older makes the limiter believe that it was made d ago, so that tests may
// use any reading up to d.
func older(l *TokenBucket, d time.Duration) *TokenBucket {
	l.words.clock.start = time.Now().Add(-d)
	return l
}

// interleaved makes the goroutines under test take turns between reading and
// swapping.
func interleaved(t *testing.T) {
	var calls atomic.Uint64
	interleave.Hook = func() {
		if calls.Add(1)%3 != 0 {
			runtime.Gosched()
		}
	}
	t.Cleanup(func() { interleave.Hook = nil })
}

// call is a request with the reading of the clock that its caller brought,
// answer what came of it and the reading that was decided on, if admitted.
type (
	call   struct{ now, n int64 }
	answer struct {
		Decision
		at int64
	}
)

// gcraModel is the sequential bucket: the pure decide. A caller that finds no
// slot for its key reads the clock again, which says born all the time.
func gcraModel(g *gcra, born int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			in, out := input.(call), output.(answer)
			for _, now := range []int64{in.now, born} {
				if out.at != 0 && out.at != now {
					continue
				}
				next, over := g.charge(state.(int64), now, in.n)
				var d Decision
				g.explain(&d, next, now, in.n, over)
				if d == out.Decision {
					return true, next
				}
			}
			return false, state
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

// TestLinearizable is promise L1: what four goroutines see in ten calls each,
// with clock readings that jump, is what decide answers in some order.
func TestLinearizable(t *testing.T) {
	interleaved(t)
	n := cases.Count(10_000, 50_000)
	rnd := rand.New(rand.NewPCG(21, 22))
	synctest.Test(t, func(t *testing.T) {
		for i := range n {
			wait := time.Duration(i%2) * 300 * time.Millisecond
			l := older(Must(NewTokenBucket(PerSecond(10), Burst(5), MaxWait(wait), MaxKeys(4))), time.Hour)
			key, born := [...]string{"", "k"}[i/2%2], l.words.clock.now()
			history := jumpingHistory(&l.bucket, key, rnd.Uint64())
			ok := porcupine.CheckOperations(gcraModel(l.limit.Load(), born), history)
			require.True(t, ok, "history %d", i)
		}
	})
	t.Logf("L1: %d histories of 4x10 calls", n)
}

// jumpingHistory drives b from four goroutines whose readings of the clock are
// up to half a second late.
func jumpingHistory(b *bucket, key string, seed uint64) []porcupine.Operation {
	var clock atomic.Int64
	var group sync.WaitGroup
	var histories [4][10]porcupine.Operation
	for c := range histories {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(c)))
			for i := range histories[c] {
				late := toTicks(time.Duration(rnd.Int64N(int64(time.Second / 2))))
				in := call{b.words.clock.now() - late, rnd.Int64N(4)}
				o := porcupine.Operation{ClientId: c, Input: in, Call: clock.Add(1)}
				lease := at(b, in.now, key, in.n)
				o.Output, o.Return = answer{lease.Decision, lease.handle.State[0] - toTicks(lease.ResetAfter)}, clock.Add(1)
				if !lease.Allowed || in.n == 0 {
					o.Output = answer{Decision: lease.Decision}
				}
				histories[c][i] = o
			}
		})
	}
	group.Wait()
	var all []porcupine.Operation
	for _, h := range histories {
		all = append(all, h[:]...)
	}
	return all
}

// TestEvictionNeverRaisesABound is promise M2: keys that fight for far too few
// slots, from goroutines that sleep between reading the clock and deciding,
// each get at most what an own bucket would give them.
func TestEvictionNeverRaisesABound(t *testing.T) {
	interleaved(t)
	n := cases.Count(200, 5000)
	for trial := range n {
		synctest.Test(t, func(t *testing.T) { fightForSlots(t, uint64(trial)) })
	}
	t.Logf("M2: %d fights of 48 keys for 4 slots", n)
}

func fightForSlots(t *testing.T, seed uint64) {
	l := Must(NewTokenBucket(PerSecond(10), Burst(3), MaxKeys(4)))
	var mu sync.Mutex
	admitted := map[string][]call{}
	var group sync.WaitGroup
	for c := range 4 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(c)))
			for range 150 {
				now := l.words.clock.now()
				time.Sleep(time.Duration(rnd.Int64N(4) / 3 * rnd.Int64N(int64(200*time.Millisecond))))
				key := fmt.Sprint(rnd.IntN(48))
				if lease := at(&l.bucket, now, key, 1); lease.Allowed {
					mu.Lock()
					admitted[key] = append(admitted[key], call{lease.handle.At, 1})
					mu.Unlock()
				}
				time.Sleep(time.Duration(rnd.Int64N(int64(5 * time.Millisecond))))
			}
		})
	}
	group.Wait()
	for key, calls := range admitted {
		requireWithin(t, l.limit.Load(), calls, key)
	}
}

// requireWithin checks every window, whatever the order of the calls.
func requireWithin(t *testing.T, g *gcra, calls []call, key string) {
	t.Helper()
	for _, from := range calls {
		for _, to := range calls {
			if to.now < from.now {
				continue
			}
			var sum int64
			for _, c := range calls {
				if c.now >= from.now && c.now <= to.now {
					sum += c.n
				}
			}
			require.LessOrEqual(t, sum*g.emission, g.depth+to.now-from.now, "key %s: %v", key, calls)
		}
	}
}

// TestNewcomerIsDecidedOnAFreshReading: the reading that its caller brought may
// be from before a word of the same key that has died and was evicted since.
func TestNewcomerIsDecidedOnAFreshReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Must(NewTokenBucket(PerSecond(10), Burst(3), MaxKeys(4)))
		old := l.words.clock.now()
		time.Sleep(time.Second)
		lease := at(&l.bucket, old, "new", 3)
		require.True(t, lease.Allowed)
		require.Equal(t, l.words.clock.now(), lease.handle.At)
	})
}

// TestSwapOfASlotThatChangedHands: a charge that was computed for the old owner
// is not the new one's, even where their words are equal.
func TestSwapOfASlotThatChangedHands(t *testing.T) {
	w := words{maxKeys: 4, clock: startClock()}
	now := w.clock.now()
	c, word := w.cell("old").load()
	require.Equal(t, done, c.swap(word, now+100, now))
	c, word = w.cell("old").load()
	c.at.id.Store(w.cell("new").id)
	require.Equal(t, lost, c.swap(word, word+50, now))
	require.Equal(t, word, c.at.word.Load(), "the new owner has his word back")
}

// TestOverflowedKeyTakesItsDebtAlong: a key that was served from the shared
// word and gets a slot later does not start afresh.
func TestOverflowedKeyTakesItsDebtAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Must(NewTokenBucket(PerSecond(1), Burst(3), MaxKeys(1)))
		for i := range 200 {
			l.Allow(fmt.Sprint("filler", i), 3)
		}
		require.Positive(t, l.Overflowed())
		got := 0
		for l.Allow("late", 1) {
			got++
		}
		slots := l.words.keys.Load().slots
		for i := range slots { // as if all others had died
			slots[i].word.Store(0)
		}
		for l.Allow("late", 1) {
			got++
		}
		require.LessOrEqual(t, got, 3, "admitted from two buckets")
		time.Sleep(time.Second)
		require.True(t, l.Allow("late", 1))
		require.NotSame(t, &l.words.keys.Load().nowhere, l.words.cell("late").at, "it has a slot now")
		require.False(t, l.Allow("late", 1))
	})
}

// TestFloodOfKeys is promise M1: ten million keys that were never seen before
// take no memory beyond the table, and a key that is known keeps its own rate.
func TestFloodOfKeys(t *testing.T) {
	const maxKeys = 1 << 20
	floods := cases.Count(1_000_000, 10_000_000)
	l := Must(NewTokenBucket(PerHour(100), MaxKeys(maxKeys)))
	for range 60 {
		require.True(t, l.Allow("known", 1))
	}
	before := heapInUse()
	began := time.Now()
	var name [20]byte
	for i := range floods {
		l.Allow(string(fmt.Appendf(name[:0], "flood-%d", i)), 100)
	}
	each := time.Since(began) / time.Duration(floods)
	grown := heapInUse() - before
	slots := len(l.words.keys.Load().slots)
	require.LessOrEqual(t, grown, int64(slots)*16/20, "heap growth beyond the table")
	got := 0
	for l.Allow("known", 1) {
		got++
	}
	require.GreaterOrEqual(t, l.Len(), min(floods, maxKeys), "room was left unused")
	if floods <= maxKeys {
		require.Zero(t, l.Overflowed(), "within MaxKeys every key finds room")
	}
	require.LessOrEqual(t, got, 41)
	require.GreaterOrEqual(t, got, 40)
	t.Logf("M1: %d keys over %d slots of 16 bytes: heap +%d bytes, %d kept, %d overflowed, %v each",
		floods, slots, grown, l.Len(), l.Overflowed(), each)
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFullPolicies: what becomes of new keys when no slot is free.
func TestFullPolicies(t *testing.T) {
	for _, c := range []struct {
		policy  FullPolicy
		allowed int // of 1000 requests under new keys
	}{{Overflow, 2 * stripeCount}, {DenyNew, 0}, {AllowNew, 1000}} {
		synctest.Test(t, func(t *testing.T) {
			l := Must(NewTokenBucket(PerHour(2), MaxKeys(8), OnFull(c.policy)))
			for i := range 500 {
				l.Allow(fmt.Sprint("fill", i), 2)
			}
			allowed := 0
			for i := range 1000 {
				lease, err := l.Acquire(background, fmt.Sprint("new", i), 1)
				require.NoError(t, err)
				if lease.Allowed {
					allowed++
					require.Equal(t, c.policy == AllowNew, lease.Source == SourceOff)
				} else if c.policy == DenyNew {
					require.Equal(t, Quota, lease.Reason)
					require.Positive(t, lease.RetryAfter)
				}
				lease.Release(Succeeded)
			}
			require.LessOrEqual(t, allowed, c.allowed, "%v", c.policy)
			if c.policy == AllowNew {
				require.Equal(t, 1000, allowed)
			}
		})
	}
}

// TestDenyNewRetryAfter: when the first slot dies the newcomer gets it.
func TestDenyNewRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Must(NewTokenBucket(PerMinute(1), MaxKeys(8), OnFull(DenyNew)))
		for i := range 500 {
			l.Allow(fmt.Sprint("fill", i), 1)
			time.Sleep(time.Millisecond)
		}
		lease, _ := l.Acquire(background, "new", 1)
		require.False(t, lease.Allowed)
		time.Sleep(lease.RetryAfter)
		require.True(t, l.Allow("new", 1))
	})
}

// TestStaleReadingDoesNotHeal: a goroutine that slept between reading the
// clock and looking at the word must not take the others' debt for an old one.
func TestStaleReadingDoesNotHeal(t *testing.T) {
	l := older(Must(NewTokenBucket(PerSecond(1), Burst(2))), time.Hour)
	now := toTicks(59 * time.Minute)
	require.True(t, at(&l.bucket, now, "", 2).Allowed)
	for range 10 {
		at(&l.bucket, toTicks(time.Minute), "", 0)
		lease := at(&l.bucket, now, "", 1)
		require.False(t, lease.Allowed)
	}
}

func TestSizes(t *testing.T) {
	require.EqualValues(t, 64, sizeOf[stripe]())
	require.EqualValues(t, 16, sizeOf[slot]())
	require.EqualValues(t, 128, sizeOf[ownWord]())
	require.EqualValues(t, 128, sizeOf[Lease]())
}
