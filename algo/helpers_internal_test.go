package algo

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/interleave"
	"github.com/sluice-go/sluice/internal/keystore"
)

var background = context.Background()

// atReading is a limiter whose caller brings its own reading of the clock.
type atReading interface {
	Limiter
	acquireAt(lease *Lease, reading *keystore.Reading, key string, n int64) error
	Allow(key string, n int64) bool
	Reset(key string)
	Len() int
	Overflowed() uint64
	clock() *keystore.Clock
	model() model
}

func (k *keyed[S, V]) clock() *keystore.Clock { return &k.store.Clock }

// model is a sequential limiter over one key: the decision on n units at now,
// the instant from which the charge counts, and the state afterwards. The
// initial state is nil.
type model func(state any, now, n int64) (d Decision, at int64, next any)

// model is the pure algorithm of k.
func (k *keyed[S, V]) model() model {
	l := k.limit.Load()
	return func(state any, now, n int64) (d Decision, at int64, next any) {
		var s S
		var c decide.Charge
		if k.words {
			s, _ = state.(S)
		} else {
			s = copied[S, V](state)
		}
		s, a, q := l.Answer(s, now, n)
		d.setAnswer(a)
		d.setQuota(q)
		if a.Allowed && n > 0 {
			c = l.Charge(s, now, n, a.Delay)
		}
		return d, c.At, s
	}
}

// copied returns a copy of state.
func copied[S, V any](state any) S {
	heir := new(V)
	if from, ok := state.(*V); ok {
		any(heir).(interface{ Inherit(from *V) }).Inherit(from)
	}
	return any(heir).(S)
}

// aged makes l a limiter that was made d ago, so that tests may use any reading
// up to d.
func aged[L atReading](l L, d time.Duration) L {
	l.clock().Start = time.Now().Add(-d)
	return l
}

// at is a call whose caller read the clock at now.
func at(l atReading, now int64, key string, n int64) (lease Lease) {
	_ = l.acquireAt(&lease, &keystore.Reading{Clock: l.clock(), Ticks: now}, key, n) // n is not negative
	return lease
}

// admit is an admission.
func admit(t require.TestingT, l Limiter, key string, n int64) Lease {
	lease, err := l.Acquire(background, key, n)
	require.NoError(t, err)
	require.True(t, lease.Allowed)
	return lease
}

// interleaved makes the goroutines under test take turns between reading and
// writing.
func interleaved(t *testing.T) {
	var calls atomic.Uint64
	interleave.Hook = func() {
		if calls.Add(1)%3 != 0 {
			runtime.Gosched()
		}
	}
	t.Cleanup(func() { interleave.Hook = nil })
}

// during runs do inside the next decision, after it has read the clock and
// before it has the lock.
func during(t *testing.T, do func()) {
	t.Cleanup(func() { interleave.Hook = nil })
	interleave.Hook = func() {
		interleave.Hook = nil
		time.Sleep(time.Millisecond)
		do()
	}
}

// ticks converts.
func ticks(d time.Duration) int64 { return keystore.ToTicks(d) }

// pause sleeps in one of three cases.
func pause(rnd *rand.Rand, most time.Duration) {
	time.Sleep(time.Duration(rnd.Int64N(3) / 2 * rnd.Int64N(int64(most))))
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
