package adaptive

import (
	"hash/maphash"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const second = int64(time.Second)

func newHeaviest() *heaviest { return &heaviest{seed: maphash.MakeSeed()} }

func TestHeaviestFewTenants(t *testing.T) {
	h := newHeaviest()
	for i := range int64(100) {
		h.note("flood", 6, second+i, i%4 == 0)
		h.note("report", 3, second+i, i%2 == 0)
		h.note("", 1, second+i, true)
	}
	require.Equal(t, []TenantUse{{"flood", .6, .25}, {"report", .3, .5}, {"", .1, 1}}, h.list(2*second))
}

// TestHeaviestAmongMany: a tenant with more than a 32nd is found among 100 000 that
// ask once each.
func TestHeaviestAmongMany(t *testing.T) {
	h := newHeaviest()
	for i := range 100_000 {
		h.note(strconv.Itoa(i), 100, second, false)
		if i%10 == 0 {
			h.note("heavy", 100, second, i%20 == 0)
		}
	}
	got := h.list(second)
	require.Len(t, got, heaviestTenants)
	require.Equal(t, "heavy", got[0].Tenant)
	require.InDelta(t, 1./11, got[0].Asked, 1./heaviestTenants)
	require.LessOrEqual(t, got[0].Asked, 1./11+1e-9)
	require.InDelta(t, .5, got[0].Admitted, .01)
	for _, one := range got[1:] {
		require.Less(t, one.Asked, .001)
	}
}

// TestHeaviestForgets: a flood that has ended is overtaken, and after ten seconds without
// overload there is nothing to tell.
func TestHeaviestForgets(t *testing.T) {
	h := newHeaviest()
	h.note("yesterday", 1000, second, true)
	for at := 2 * second; at < 60*second; at += second {
		h.note("today", 10, at, true)
	}
	got := h.list(60 * second)
	require.Equal(t, "today", got[0].Tenant)
	require.Less(t, got[1].Asked, .05)
	require.Empty(t, h.list(70*second))
}

// TestHeaviestIsCheap: no allocation, and no waiting for a reader.
func TestHeaviestIsCheap(t *testing.T) {
	h := newHeaviest()
	require.Zero(t, testing.AllocsPerRun(100, func() { h.note("tenant", 1, second, true) }))
	h.mu.Lock()
	h.note("tenant", 1, second, true)
	h.mu.Unlock()
}
