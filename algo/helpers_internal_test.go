package algo

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo/internal/engine"
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
	Stats() Stats
	clock() *keystore.Clock
	model() model
}

func (l *RateLimiter) clock() *keystore.Clock { return l.engine().Clock() }

// model is a sequential limiter over one key: the decision on n units at now,
// the instant from which the charge counts, and the state afterwards. The
// initial state is nil.
type model func(state any, now, n int64) (d Decision, at int64, next any)

// model is the pure algorithm of l.
func (l *RateLimiter) model() model {
	pure := l.engine().(interface {
		Model() func(state any, now, n int64) (decide.Answer, decide.Quota, decide.Charge, any)
	}).Model()
	return func(state any, now, n int64) (d Decision, at int64, next any) {
		a, q, c, next := pure(state, now, n)
		d.setAnswer(a, q)
		return d, c.At, next
	}
}

// colored is a limiter of the colors up to pass of a marker, as package marker makes it.
func colored(m *decide.ThreeColor, store *keystore.Store[*decide.ColorState, decide.ColorState], pass decide.Color) *RateLimiter {
	l := engine.Limit[*decide.ColorState]{Decider: &decide.ColorLimit{ThreeColor: m, Pass: pass}}
	return engine.Limiter(engine.Of(store, engine.Config{}, l)).(*RateLimiter)
}

// colorStore is the table of a marker.
func colorStore(opts ...Option) *keystore.Store[*decide.ColorState, decide.ColorState] {
	s := Must(slidingLog.configure(Spec{Rate: PerSecond(1)}, opts))
	return engine.NewValues(s.table(), (*decide.ColorState).Inherit)
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
