package algo

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestLeaseSize: a lease is two cache lines.
func TestLeaseSize(t *testing.T) { require.LessOrEqual(t, unsafe.Sizeof(Lease{}), uintptr(128)) }

// call is a request with the reading of the clock that its caller brought, and
// answer its result with the instant from which it counts, if admitted.
type (
	call   struct{ now, n int64 }
	answer struct {
		Decision
		at int64
	}
)

// TestL1_Linearizable: the answers to four goroutines in ten calls each, with
// clock readings that jump, equal the answers of the pure algorithm in some
// order.
func TestL1_Linearizable(t *testing.T) {
	for _, spec := range append(cases.Limits("6/s", cases.Without{
		"spread": "the model has no key, by which the windows move",
		"zone":   "a limiter that was made an hour ago, by aged, is an hour off the wall clock",
	}), "marker") {
		t.Run(spec, func(t *testing.T) {
			interleaved(t)
			n := cases.Count(2000, 50_000)
			rnd := rand.New(rand.NewPCG(21, 22))
			synctest.Test(t, func(t *testing.T) {
				for i := range n {
					l := aged(linearLimiter(spec), time.Hour)
					history := jumpingHistory(l, [...]string{"", "k"}[i%2], rnd.Uint64())
					require.True(t, porcupine.CheckOperations(sequential(l.model(), l.clock().Now()), history), "history %d", i)
				}
			})
			t.Logf("L1: %d histories of 4x10 calls", n)
		})
	}
}

func linearLimiter(spec string) atReading {
	if spec == "marker" {
		m := Must(decide.NewTRTCM(PerSecond(7).local(), 3, PerSecond(11).local(), 4))
		return colored(m, colorStore(MaxKeys(4)), decide.Yellow)
	}
	return of(spec)(MaxKeys(4))
}

// sequential is the sequential limiter. A caller that finds no slot for its key,
// or a state beyond its reading, reads the clock again, which says born all the
// time.
func sequential(decide model, born int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return nil },
		Step: func(state, input, output any) (bool, any) {
			in, out := input.(call), output.(answer)
			for _, now := range []int64{in.now, born} {
				d, at, next := decide(state, now, in.n)
				if d != out.Decision || at != out.at {
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

// jumpingHistory drives l from four goroutines whose readings of the clock are
// up to one and a half seconds late.
func jumpingHistory(l atReading, key string, seed uint64) (all []porcupine.Operation) {
	var order atomic.Int64
	var group sync.WaitGroup
	var histories [4][10]porcupine.Operation
	for g := range histories {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			for i := range histories[g] {
				late := ticks(time.Duration(rnd.Int64N(int64(1500 * time.Millisecond))))
				in := call{l.clock().Now() - late, rnd.Int64N(4)}
				o := porcupine.Operation{ClientId: g, Input: in, Call: order.Add(1)}
				lease := at(l, in.now, key, in.n)
				out := answer{Decision: lease.Decision}
				if lease.Allowed && in.n > 0 {
					out.at = lease.handle.At
				}
				o.Output, o.Return = out, order.Add(1)
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

// TestM2_EvictionNeverRaisesABound: keys compete for far too few slots, from
// goroutines that sleep between reading the clock and deciding. Each key gets at
// most as much as from a limiter of its own, as long as only expired states are
// evicted. Refunded units do not count.
func TestM2_EvictionNeverRaisesABound(t *testing.T) {
	for _, row := range crowdRows {
		t.Run(row.name, func(t *testing.T) {
			interleaved(t)
			n := cases.Count(40, 3000)
			for trial := range n {
				synctest.Test(t, func(t *testing.T) {
					for key, all := range fight(row.make(MaxKeys(4), DenyNew()), uint64(trial)) {
						slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(a.at, b.at) })
						row.check(t, key, all)
					}
				})
			}
			t.Logf("M2: %d fights of 48 keys for 16 slots", n)
		})
	}
}

// fight returns the admissions of each key that were not refunded.
func fight(l atReading, seed uint64) map[string][]kept {
	scale := time.Duration(1+4*(seed%2)) * time.Millisecond
	var mu sync.Mutex
	all := map[string][]kept{}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			for range 150 {
				now := l.clock().Now()
				time.Sleep(time.Duration(rnd.Int64N(4) / 3 * rnd.Int64N(int64(400*scale))))
				key := fmt.Sprint(rnd.IntN(48))
				lease := at(l, now, key, 1)
				switch {
				case !lease.Allowed:
				case rnd.IntN(4) == 0:
					pause(rnd, time.Second)
					lease.Release(Canceled)
				default:
					mu.Lock()
					all[key] = append(all[key], kept{at: lease.handle.At, n: 1, charged: 1, state: lease.handle.State})
					mu.Unlock()
				}
				time.Sleep(time.Duration(rnd.Int64N(int64(4 * scale))))
			}
		})
	}
	group.Wait()
	return all
}

// TestM2_NewKeysEvictNoneThatSpentMore: a flood of keys that spend one unit each
// lets off no key that has spent two or more.
func TestM2_NewKeysEvictNoneThatSpentMore(t *testing.T) {
	floods := max(cases.Count(5000, 50_000), 1000)
	for _, spec := range cases.Limits("3/day", cases.Without{cases.Ahead: "one unit is all that fits at once", cases.Delays: "Allow takes no units that would wait"}) {
		synctest.Test(t, func(t *testing.T) {
			l := of(spec)(MaxKeys(8))
			for range 3 {
				require.True(t, l.Allow("known", 1), spec)
			}
			for i := range floods {
				time.Sleep(time.Millisecond)
				require.True(t, l.Allow(fmt.Sprint("flood", i), 1), spec)
			}
			require.False(t, l.Allow("known", 1), spec)
			require.Greater(t, l.Stats().Overflowed, uint64(floods-100), spec)
		})
	}
}

// TestAbsentKeyGetsAFreshReading: the reading of its caller may be from before a
// state of the same key that has expired and was evicted since.
func TestAbsentKeyGetsAFreshReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, spec := range cases.Limits("6/s", cases.Without{"spread": "a charge has the instants of its key"}) {
			l := of(spec)(MaxKeys(4))
			old := l.clock().Now()
			time.Sleep(time.Second)
			lease := at(l, old, "new", 1)
			require.True(t, lease.Allowed, spec)
			require.Equal(t, l.clock().Now(), lease.handle.At, spec)
		}
	})
}

// TestM1_OneKey: a limiter with one used key weighs at most 1 KB, so that there may be one
// for each tenant; where the state of a key is not one word, at most 2 KB.
func TestM1_OneKey(t *testing.T) {
	for _, spec := range cases.Limits("6/s", cases.Without{"zone": "it keeps the clock changes of its zone, 3 KB for Berlin"}) {
		var all [2000]Limiter
		before := heapInUse()
		for i := range all {
			all[i] = Must(Must(Parse(spec)).New())
			_, err := all[i].Acquire(t.Context(), "k", 1)
			require.NoError(t, err)
		}
		each, most := (heapInUse()-before)/int64(len(all)), int64(1024)
		if all[0].(*RateLimiter).values != nil {
			most = 2048
		}
		require.LessOrEqual(t, each, most, "%s: of them %s; the table of keys and the decider are beside it", spec, sizes(RateLimiter{}, setting{}))
		t.Logf("M1: %s: %d B with one key", spec, each)
		runtime.KeepAlive(&all)
	}
}

// sizes names each field of structs with its bytes.
func sizes(structs ...any) (s string) {
	for _, v := range structs {
		for t, i := reflect.TypeOf(v), 0; i < t.NumField(); i++ {
			s += fmt.Sprintf("%s.%s %d, ", t.Name(), t.Field(i).Name, t.Field(i).Type.Size())
		}
	}
	return s
}

// TestM1_FloodOfKeys: ten million keys that were never seen before take no
// memory beyond the table, and a key that is known keeps its own rate.
func TestM1_FloodOfKeys(t *testing.T) {
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
		l.Allow(string(fmt.Appendf(name[:0], "flood-%d", i)), 1)
	}
	each := time.Since(began) / time.Duration(floods)
	grown := heapInUse() - before
	require.LessOrEqual(t, grown, int64(maxKeys)*43, "heap growth beyond the table")
	got := 0
	for l.Allow("known", 1) {
		got++
	}
	require.GreaterOrEqual(t, l.Stats().Live, min(floods, maxKeys)-5, "room was left unused")
	if floods <= maxKeys {
		require.LessOrEqual(t, l.Stats().Overflowed, uint64(5), "within MaxKeys a key in a million finds its two groups full")
	}
	require.LessOrEqual(t, got, 41)
	require.GreaterOrEqual(t, got, 40)
	t.Logf("M1: %d keys with room for %d: heap +%d bytes, %d kept, %d overflowed, %v each",
		floods, maxKeys, grown, l.Stats().Live, l.Stats().Overflowed, each)
}

// TestFullPolicies: the treatment of new keys when no slot is free.
func TestFullPolicies(t *testing.T) {
	for _, c := range []struct {
		opts    []Option
		allowed int // of 1000 requests under new keys
	}{{nil, 1000}, {[]Option{DenyNew()}, 0}} {
		synctest.Test(t, func(t *testing.T) {
			l := Must(NewTokenBucket(PerHour(2), append(c.opts, MaxKeys(8))...))
			for i := range 500 {
				l.Allow(fmt.Sprint("fill", i), 2)
			}
			allowed := 0
			for i := range 1000 {
				key := fmt.Sprint("new", i)
				peek, err := l.Peek(background, key, 1)
				require.NoError(t, err)
				lease, err := l.Acquire(background, key, 1)
				require.NoError(t, err)
				require.Equal(t, lease.Allowed, peek.Allowed, "a peek predicts Acquire")
				require.Equal(t, lease.RetryAfter, peek.RetryAfter)
				if lease.Allowed {
					allowed++
				} else {
					require.Equal(t, Overload, lease.Reason)
					require.Positive(t, lease.RetryAfter)
				}
				lease.Release(Succeeded)
			}
			require.Equal(t, c.allowed, allowed, "%v", c.opts)
		})
	}
}

// TestDenyNewRetryAfter: when the first slot expires the new key gets it.
func TestDenyNewRetryAfter(t *testing.T) {
	for _, spec := range cases.Limits("1/min", nil) {
		synctest.Test(t, func(t *testing.T) {
			l := of(spec)(MaxKeys(8), DenyNew())
			for i := range 500 {
				l.Allow(fmt.Sprint("fill", i), 1)
				time.Sleep(time.Millisecond)
			}
			lease, err := l.Acquire(background, "new", 1)
			require.NoError(t, err)
			require.False(t, lease.Allowed, spec)
			time.Sleep(lease.RetryAfter)
			require.True(t, l.Allow("new", 1), spec)
		})
	}
}

// TestLateReadingCutsNothing: a caller that slept between reading the clock and
// looking at the state must not take the debt of others for an implausible one.
func TestLateReadingCutsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, spec := range cases.Limits("2/min", cases.Without{cases.Ahead: "both units leave nothing to cut", cases.Delays: "the line has room for more"}) {
			l := aged(of(spec)(), time.Hour)
			now := l.clock().Now()
			require.True(t, func() bool { lease := at(l, now, "", 2); return lease.Allowed }(), spec)
			for range 10 {
				at(l, ticks(time.Minute), "", 0)
				lease := at(l, now, "", 1)
				require.False(t, lease.Allowed, spec)
			}
		}
	})
}

// TestEndOfTheClock: a limiter that is older than its clock can count, 4.5
// years, denies requests that it cannot charge, and does not take its keys for
// expired.
func TestEndOfTheClock(t *testing.T) {
	end := ticks(math.MaxInt64)
	for _, spec := range cases.Limits("6/s", nil) {
		l := of(spec)(MaxKeys(4), DenyNew())
		for _, key := range []string{"", "k"} {
			admitted := 0
			for i := range 1000 {
				if lease := at(l, end, key, 1); lease.Allowed {
					admitted++
				}
				if i%10 == 0 {
					for other := range 40 {
						at(l, end, string(rune('A'+other)), 1)
					}
				}
			}
			require.LessOrEqual(t, admitted, 40, "%s, key %q", spec, key)
		}
	}
}

// TestW1_ReadingsBeforeTheLimiter: a reading of the clock from before the limiter was made, as
// of a decision that began earlier, forgets no debt.
func TestW1_ReadingsBeforeTheLimiter(t *testing.T) {
	for _, spec := range cases.Limits("2/h", cases.Without{cases.Ahead: "what fits depends on the reading", cases.Delays: "the line has room for more"}) {
		for _, key := range []string{"", "k"} {
			synctest.Test(t, func(t *testing.T) {
				l := of(spec)()
				admitted := 0
				for i := range 20 {
					if before := at(l, -ticks(time.Duration(i)*time.Hour), key, 1); before.Allowed {
						admitted++
					}
				}
				for l.Allow(key, 1) {
					admitted++
				}
				require.Equal(t, 2, admitted, "%s, key %q", spec, key)
			})
		}
	}
}
