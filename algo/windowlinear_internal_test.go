package algo

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// atReading is a limiter whose caller brings his own reading of the clock.
type atReading interface {
	Limiter
	acquireAt(lease *Lease, now int64, key string, n int64)
	Len() int
	Reset(key string)
	SetRate(Rate) error
	Overflowed() uint64
}

// answersAt is a step of a sequential model: the decision at a reading, the
// instant at which it counts, and the state afterwards.
type answersAt func(state any, now, n int64) (d Decision, at int64, next any)

func stepFixed(f *fixed) answersAt {
	return func(state any, now, n int64) (d Decision, at int64, next any) {
		word, _ := state.(int64)
		word, d = f.decide(word, now, n)
		return d, now, word
	}
}

func stepWindow[S any](p rules[S], inherit func(heir, from *S)) answersAt {
	return func(state any, now, n int64) (d Decision, at int64, next any) {
		var s S
		if was, ok := state.(S); ok {
			inherit(&s, &was)
		}
		p.adopt(&s, clock{})
		at = max(now, p.latest(&s))
		decideWindow(p, &s, &d, now, at, n)
		return d, at, s
	}
}

// windowModel is the sequential window. A caller that finds no slot for its
// key, or a word beyond its reading, reads the clock again, which says born
// all the time.
func windowModel(answers answersAt, born int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return nil },
		Step: func(state, input, output any) (bool, any) {
			in, out := input.(call), output.(answer)
			for _, now := range []int64{in.now, born} {
				d, at, next := answers(state, now, in.n)
				if d != out.Decision || (out.at != 0 && out.at != at) {
					continue
				}
				if !d.Allowed || in.n == 0 {
					next = state
				}
				return true, next
			}
			return false, state
		},
		Equal: reflect.DeepEqual,
	}
}

// linearWindows make a limiter that was made an hour ago, and its model.
var linearWindows = map[string]func(Rate) (atReading, clock, answersAt){
	"fixed": func(r Rate) (atReading, clock, answersAt) {
		l := must(NewFixedWindow(r, MaxKeys(4)))
		l.words.clock.start = l.words.clock.start.Add(-time.Hour)
		return l, l.words.clock, stepFixed(l.limit.Load())
	},
	"two counters": func(r Rate) (atReading, clock, answersAt) {
		l := must(NewSlidingWindow(r, MaxKeys(4)))
		l.cells.clock.start = l.cells.clock.start.Add(-time.Hour)
		return l, l.cells.clock, stepWindow(l.limit.Load(), inheritTally)
	},
	"cells": func(r Rate) (atReading, clock, answersAt) {
		l := must(NewSlidingWindow(r, MaxKeys(4), Cells(5)))
		l.cells.clock.start = l.cells.clock.start.Add(-time.Hour)
		return l, l.cells.clock, stepWindow(l.limit.Load(), inheritTally)
	},
	"log": func(r Rate) (atReading, clock, answersAt) {
		l := must(NewSlidingLog(r, MaxKeys(4)))
		l.cells.clock.start = l.cells.clock.start.Add(-time.Hour)
		return l, l.cells.clock, stepWindow(l.limit.Load(), inheritStamps)
	},
}

// TestWindowsLinearizable is promise L1 for windows: what four goroutines see in
// ten calls each, with clock readings that jump, is what decide answers in some
// order.
func TestWindowsLinearizable(t *testing.T) {
	for name, make := range linearWindows {
		t.Run(name, func(t *testing.T) {
			interleaved(t)
			n := cases.Count(2500, 50_000)
			rnd := rand.New(rand.NewPCG(43, 44))
			synctest.Test(t, func(t *testing.T) {
				for i := range n {
					l, clock, answers := make(PerSecond(6))
					key := [...]string{"", "k"}[i%2]
					history := windowHistory(l, clock, key, rnd.Uint64())
					ok := porcupine.CheckOperations(windowModel(answers, clock.now()), history)
					require.True(t, ok, "history %d", i)
				}
			})
			t.Logf("L1: %d histories of 4x10 calls", n)
		})
	}
}

// windowHistory drives l from four goroutines whose readings of the clock are
// up to one and a half windows late.
func windowHistory(l atReading, c clock, key string, seed uint64) (all []porcupine.Operation) {
	var order atomic.Int64
	var group sync.WaitGroup
	var histories [4][10]porcupine.Operation
	for g := range histories {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			for i := range histories[g] {
				late := toTicks(time.Duration(rnd.Int64N(int64(1500 * time.Millisecond))))
				in := call{c.now() - late, rnd.Int64N(4)}
				o := porcupine.Operation{ClientId: g, Input: in, Call: order.Add(1)}
				var lease Lease
				l.acquireAt(&lease, in.now, key, in.n)
				o.Output, o.Return = answer{lease.Decision, lease.handle.At}, order.Add(1)
				histories[g][i] = o
			}
		})
	}
	group.Wait()
	for _, h := range histories {
		all = append(all, h[:]...)
	}
	return all
}

// fewSlots are the windows with room for a few keys, and the most units of a
// quota of 3 a second in any window shorter than that. The instants are those
// at which the decisions count.
var fewSlots = map[string]struct {
	make     func() (atReading, clock)
	anywhere int64
}{
	"fixed": {func() (atReading, clock) {
		l := must(NewFixedWindow(PerSecond(3), MaxKeys(4)))
		return l, l.words.clock
	}, 6},
	"spread": {func() (atReading, clock) {
		l := must(NewFixedWindow(PerSecond(3), MaxKeys(4), Spread()))
		return l, l.words.clock
	}, 6},
	"two counters": {func() (atReading, clock) {
		l := must(NewSlidingWindow(PerSecond(3), MaxKeys(4)))
		return l, l.cells.clock
	}, 5},
	"cells": {func() (atReading, clock) {
		l := must(NewSlidingWindow(PerSecond(3), MaxKeys(4), Cells(4)))
		return l, l.cells.clock
	}, 3},
	"log": {func() (atReading, clock) {
		l := must(NewSlidingLog(PerSecond(3), MaxKeys(4)))
		return l, l.cells.clock
	}, 3},
	"strict": {func() (atReading, clock) {
		l := must(NewStrict(PerSecond(3), MaxKeys(4)))
		return strictAt{l}, l.words.clock
	}, 3},
}

// strictAt hands acquireAt through.
type strictAt struct{ *Strict }

func (s strictAt) acquireAt(lease *Lease, now int64, key string, n int64) {
	s.Strict.acquireAt(lease, now, key, n)
}

// TestWindowEvictionIsUnobservable is promise M2: keys that fight for far too
// few slots, from goroutines that sleep between reading the clock and deciding,
// each get at most what a limiter of their own would give them. What some give
// back does not count.
func TestWindowEvictionIsUnobservable(t *testing.T) {
	for name, c := range fewSlots {
		t.Run(name, func(t *testing.T) {
			interleaved(t)
			for trial := range cases.Count(60, 3000) {
				synctest.Test(t, func(t *testing.T) {
					l, clock := c.make()
					for key, all := range fight(l, clock, uint64(trial)) {
						requireAnywhere(t, key, all, toTicks(time.Second), c.anywhere)
					}
				})
			}
		})
	}
}

// fight returns what each key was admitted and did not give back.
func fight(l atReading, c clock, seed uint64) map[string][]admission {
	var mu sync.Mutex
	admitted := map[string][]admission{}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			for range 150 {
				now := c.now()
				time.Sleep(time.Duration(rnd.Int64N(4) / 3 * rnd.Int64N(int64(2*time.Second))))
				key := fmt.Sprint(rnd.IntN(48))
				var lease Lease
				l.acquireAt(&lease, now, key, 1)
				switch {
				case !lease.Allowed:
				case rnd.IntN(4) == 0:
					time.Sleep(time.Duration(rnd.Int64N(2) * rnd.Int64N(int64(time.Second))))
					lease.Release(Canceled)
				default:
					mu.Lock()
					admitted[key] = append(admitted[key], admission{lease.handle.At, 1})
					mu.Unlock()
				}
				time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
			}
		})
	}
	group.Wait()
	return admitted
}

func requireAnywhere(t *testing.T, key string, all []admission, period, most int64) {
	t.Helper()
	for _, from := range all {
		var sum int64
		for _, a := range all {
			if a.at >= from.at && a.at-from.at < period {
				sum += a.n
			}
		}
		require.LessOrEqual(t, sum, most, "key %s: %v", key, all)
	}
}
