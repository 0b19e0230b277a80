package algo

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// TestMarkerSettleBeyondWhatABucketOwes: when more is charged again than a
// bucket can owe, what was cut off is not given back.
func TestMarkerSettleBeyondWhatABucketOwes(t *testing.T) {
	for name, c := range map[string]struct {
		marker Marker
		pass   Color
	}{
		"srTCM":    {must(NewSRTCM(PerSecond(1), 5, 0)), Green},
		"excess":   {must(NewSRTCM(PerSecond(1), 0, 5)), Yellow},
		"trTCM":    {must(NewTRTCM(PerSecond(1), 5, PerSecond(2), 5)), Green},
		"RFC 4115": {must(NewRFC4115(PerSecond(1), 0, PerSecond(1), 5)), Yellow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.marker.(*marker).cells.init(Spec{MaxKeys: 1})
				l := FromMarker(c.marker, c.pass)
				var leases [20]Lease
				for i := range leases {
					leases[i] = admit(t, l, "", 5)
					leases[i].Settle(0)
				}
				admit(t, l, "", 5)
				for i := range leases {
					leases[i].Settle(5)
				}
				for i := range leases {
					leases[i].Release(Canceled)
				}
				kept, err := l.Acquire(background, "", 1)
				require.NoError(t, err)
				require.False(t, kept.Allowed, "5 of 5 were kept")
			})
		})
	}
}

// TestMarkerRefundsMintNothing: four goroutines charge, settle and cancel keys
// that fight for slots or the empty one, under every policy, by limiters of two
// colors over the same marker, and some read the clock long before they decide.
// What is not given back stays within the bounds of each color.
func TestMarkerRefundsMintNothing(t *testing.T) {
	for name, make := range map[string]func(...Option) (Marker, error){
		"srTCM":    func(o ...Option) (Marker, error) { return NewSRTCM(PerSecond(10), 3, 2, o...) },
		"trTCM":    func(o ...Option) (Marker, error) { return NewTRTCM(PerSecond(7), 3, PerSecond(11), 4, o...) },
		"RFC 4115": func(o ...Option) (Marker, error) { return NewRFC4115(PerSecond(7), 3, PerSecond(4), 2, o...) },
	} {
		t.Run(name, func(t *testing.T) {
			interleaved(t)
			n := cases.Count(300, 10_000)
			for trial := range n {
				synctest.Test(t, func(t *testing.T) {
					m := must(make(MaxKeys(2), OnFull(FullPolicy(trial%3)))).(*marker)
					for _, all := range colored(m, uint64(trial)) {
						requireColors(t, &m.marking, all)
					}
				})
			}
			t.Logf("W2: %d crowds of 4 that charge, settle and cancel", n)
		})
	}
}

// keptColor is what an admission of a color keeps, from an instant in ns on.
type keptColor struct {
	at, n int64
	color Color
}

// colored returns what each key was admitted and has not given back.
func colored(m *marker, seed uint64) map[string][]keptColor {
	var mu sync.Mutex
	all := map[string][]keptColor{}
	keys := int(seed%2) * 32
	actual := []int64{0, 1, 2, 3}
	if seed%8 < 2 { // more is never given back, and stands in the way for long
		actual = append(actual, 9)
	}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			pause := func(most time.Duration) { time.Sleep(time.Duration(rnd.Int64N(3) / 2 * rnd.Int64N(int64(most)))) }
			for range 40 {
				key := ""
				if keys > 0 {
					key = fmt.Sprint(rnd.IntN(keys))
				}
				now := m.now()
				pause(time.Second)
				l := &coloring{m, Color(rnd.IntN(2))}
				var lease Lease
				l.acquireAt(&lease, now, key, 1+rnd.Int64N(3))
				if lease.Allowed && lease.Source != SourceOff {
					k := keptColor{at: lease.handle.At, color: Color(lease.handle.State[0])}
					k.n = correctAtRandom(&lease, rnd, actual)
					mu.Lock()
					all[key] = append(all[key], k)
					mu.Unlock()
				}
				pause(200 * time.Millisecond)
			}
		})
	}
	group.Wait()
	return all
}

// requireColors looks at every window.
func requireColors(t *testing.T, m *marking, all []keptColor) {
	t.Helper()
	slices.SortFunc(all, func(a, b keptColor) int { return cmp.Compare(a.at, b.at) })
	for i, first := range all {
		var units [2]int64
		for _, k := range all[i:] {
			units[k.color] += k.n
			checkMarked(t, m, units[Green], units[Yellow], k.at-first.at)
		}
	}
}
