package adaptive

import (
	"hash/maphash"
	"math"
	"math/rand/v2"
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
	require.Equal(t, []TenantUse{{"flood", .6, .25, .375}, {"report", .3, .5, .375}, {"", .1, 1, .25}}, h.list(2*second))
}

// TestHeaviestAmongMany: a tenant with more than a 16th is found among 100 000 that ask
// once each, and none of these is listed.
func TestHeaviestAmongMany(t *testing.T) {
	h := newHeaviest()
	for i := range 100_000 {
		h.note(strconv.Itoa(i), 100, second, i%4 == 0)
		if i%10 == 0 {
			h.note("heavy", 100, second, i%20 == 0)
		}
	}
	got := h.list(second)
	require.Len(t, got, 1)
	require.Equal(t, "heavy", got[0].Tenant)
	require.InDelta(t, 1./11, got[0].Asked, 1./heaviestTenants)
	require.LessOrEqual(t, got[0].Asked, 1./11+1e-9)
	require.InDelta(t, .5, got[0].Admitted, .01)
	require.InDelta(t, 5./30, got[0].Served, 1./heaviestTenants, "a part of all, not of those in the list")
}

// TestHeaviestAreFound: fifteen tenants with little more than a 16th each are found among
// many that ask once, in any order.
func TestHeaviestAreFound(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		h := newHeaviest()
		for i := range 50_000 {
			if name := random.IntN(160); name < 155 {
				h.note(strconv.Itoa(name%15), 100, second, true)
			} else {
				h.note("once "+strconv.Itoa(i), 100, second, true)
			}
		}
		got := h.list(second)
		require.Len(t, got, 15)
		for _, one := range got {
			require.InDelta(t, 155./160/15, one.Asked, .01)
		}
	}
}

// TestHeaviestForgets: a flood that has ended is overtaken and then not listed, and the list
// ends a minute after the last decision.
func TestHeaviestForgets(t *testing.T) {
	h := newHeaviest()
	h.note("yesterday", 1000, second, true)
	for at := 2 * second; at <= 20*second; at += second {
		h.note("today", 10, at, true)
	}
	require.Len(t, h.list(20*second), 2)
	for at := 21 * second; at <= 120*second; at += second {
		h.note("today", 10, at, true)
	}
	require.Equal(t, []TenantUse{{"today", 1, 1, 1}}, rounded(h.list(180*second)))
	require.Empty(t, h.list(181*second))
}

func rounded(all []TenantUse) []TenantUse {
	for i := range all {
		for _, f := range []*float64{&all[i].Asked, &all[i].Admitted, &all[i].Served} {
			*f = math.Round(*f*100) / 100
		}
	}
	return all
}

// TestHeaviestIsCheap: no allocation, and no waiting for a reader.
func TestHeaviestIsCheap(t *testing.T) {
	h := newHeaviest()
	require.Zero(t, testing.AllocsPerRun(100, func() { h.note("tenant", 1, second, true) }))
	h.mu.Lock()
	h.note("tenant", 1, second, true)
	h.mu.Unlock()
}
