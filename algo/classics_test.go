package algo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// The well-known numbers of these algorithms, one table for each: run with -v
// to read them.

const s = time.Second

// waits acquires each cost in turn, sleeping out the delay before the next, as
// one thread calling Guava's acquire does.
func waits(t *testing.T, l algo.Limiter, costs ...int64) (delays []time.Duration) {
	for _, n := range costs {
		lease := acquire(t, l, "k", n)
		require.True(t, lease.Allowed)
		delays = append(delays, lease.Delay)
		t.Logf("  acquire(%d) waits %v", n, lease.Delay)
		time.Sleep(lease.Delay)
	}
	return delays
}

func TestClassicGuavaWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("RateLimiter.create(2.0, 4 s), cold factor 3:")
		l := algo.Must(algo.NewSmoothWarmingUp(algo.PerSecond(2), 4*s, algo.MaxWait(algo.Forever)))
		want := []time.Duration{
			0, 1375 * s / 1000, 1125 * s / 1000, 875 * s / 1000, 625 * s / 1000, // the slope: 4 s
			s / 2, s / 2, s / 2, s / 2, // below the threshold: 2 s
			s / 2, s / 2, // not stored
		}
		require.Equal(t, want, waits(t, l, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
		time.Sleep(acquire(t, l, "k", 0).ResetAfter)
		time.Sleep(4 * s)
		t.Log("after four idle seconds it is cold again, and takes eight at once:")
		require.Equal(t, []time.Duration{0, 6 * s}, waits(t, l, 8, 1))
	})
}

func TestClassicGuavaBursty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("RateLimiter.create(1.0):")
		l := algo.Must(algo.NewSmoothBursty(algo.PerSecond(1), algo.MaxWait(algo.Forever)))
		require.Equal(t, []time.Duration{0, s, 10 * s, 2 * s, 20 * s}, waits(t, l, 1, 10, 2, 20, 2))
	})
}

// packet is one line of a marker's trace.
type packet struct {
	at   time.Duration
	n    int64
	in   algo.Color
	want algo.Color
	left string // the RFC's counters afterwards
}

const g, y, r = algo.Green, algo.Yellow, algo.Red

func trace(t *testing.T, m algo.Marker, packets []packet) {
	began := time.Now()
	for _, p := range packets {
		time.Sleep(p.at - time.Since(began))
		out, err := m.Mark(ctx, "k", p.n, p.in)
		require.NoError(t, err)
		t.Logf("  %4v: %3d %-6v -> %-6v %s", p.at, p.n, p.in, out, p.left)
		require.Equal(t, p.want, out)
	}
}

func TestClassicRFC2697(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("srTCM, CIR 100/s, CBS 300, EBS 200:")
		m, err := algo.NewSRTCM(algo.PerSecond(100), 300, 200)
		require.NoError(t, err)
		trace(t, m, []packet{
			{0, 200, g, g, "Tc 100 Te 200"},
			{0, 200, g, y, "Tc 100 Te 0"},
			{0, 150, g, r, "Tc 100 Te 0"},
			{0, 100, g, g, "Tc 0 Te 0"},
			{0, 50, y, r, "Tc 0 Te 0"},
			{2 * s, 50, y, r, "Tc 200 Te 0: yellow takes nothing from the committed bucket"},
			{2 * s, 150, g, g, "Tc 50 Te 0"},
			{6 * s, 100, y, y, "Tc 300 Te 50: 150 were spilled"},
			{6 * s, 1, r, r, "Tc 300 Te 50"},
			{6 * s, 300, g, g, "Tc 0 Te 50"},
			{6 * s, 60, g, r, "Tc 0 Te 50"},
			{6 * s, 50, g, y, "Tc 0 Te 0"},
		})
	})
}

func TestClassicRFC2698(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("trTCM, CIR 100/s, CBS 200, PIR 200/s, PBS 300:")
		m, err := algo.NewTRTCM(algo.PerSecond(100), 200, algo.PerSecond(200), 300)
		require.NoError(t, err)
		trace(t, m, []packet{
			{0, 200, g, g, "Tc 0 Tp 100"},
			{0, 100, g, y, "Tc 0 Tp 0"},
			{0, 1, g, r, "Tc 0 Tp 0"},
			{1 * s, 100, y, y, "Tc 100 Tp 100"},
			{1 * s, 100, g, g, "Tc 0 Tp 0"},
			{2 * s, 10, r, r, "Tc 100 Tp 200"},
			{2 * s, 150, g, y, "Tc 100 Tp 50"},
			{2 * s, 60, g, r, "Tc 100 Tp 50"},
			{2 * s, 50, g, g, "Tc 50 Tp 0"},
		})
	})
}

func TestClassicRFC4115(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Log("RFC 4115, CIR 100/s, CBS 200, EIR 50/s, EBS 100:")
		m, err := algo.NewRFC4115(algo.PerSecond(100), 200, algo.PerSecond(50), 100)
		require.NoError(t, err)
		trace(t, m, []packet{
			{0, 200, g, g, "Tc 0 Te 100: green leaves the excess alone"},
			{0, 60, y, y, "Tc 0 Te 40"},
			{0, 60, g, r, "Tc 0 Te 40"},
			{0, 40, g, y, "Tc 0 Te 0"},
			{1 * s, 60, y, r, "Tc 100 Te 50"},
			{1 * s, 50, y, y, "Tc 100 Te 0"},
			{1 * s, 100, g, g, "Tc 0 Te 0"},
			{9 * s, 100, y, y, "Tc 200 Te 0: nothing was spilled"},
		})
	})
}

func TestClassicNginx(t *testing.T) {
	const denied = -1
	ms := func(ns ...int) (ds []time.Duration) {
		for _, n := range ns {
			ds = append(ds, time.Duration(n)*time.Millisecond)
		}
		return ds
	}
	for _, c := range []struct {
		name string
		opts []algo.Option
		want []time.Duration
	}{
		{"rate=2r/s", nil, ms(0, denied)},
		{"rate=2r/s burst=5", []algo.Option{algo.Burst(5)}, ms(0, 500, 1000, 1500, 2000, 2500, denied)},
		{"rate=2r/s burst=5 delay=3", []algo.Option{algo.Burst(5), algo.DelayAfter(3)}, ms(0, 0, 0, 0, 500, 1000, denied)},
		{"rate=2r/s burst=5 nodelay", []algo.Option{algo.Burst(5), algo.NoDelay()}, ms(0, 0, 0, 0, 0, 0, denied)},
	} {
		synctest.Test(t, func(t *testing.T) {
			t.Logf("limit_req %s, seven requests at once:", c.name)
			l := algo.Must(algo.NewNginx(algo.PerSecond(2), c.opts...))
			for i, want := range c.want {
				lease := acquire(t, l, "k", 1)
				t.Logf("  request %d: allowed %v, delay %v", i+1, lease.Allowed, lease.Delay)
				if want < 0 {
					require.False(t, lease.Allowed)
					require.Equal(t, 500*time.Millisecond, lease.RetryAfter, "one slot in half a second")
					continue
				}
				require.True(t, lease.Allowed)
				require.Equal(t, want, lease.Delay)
			}
			time.Sleep(500 * time.Millisecond)
			require.True(t, acquire(t, l, "k", 1).Allowed, "one slot is free")
			require.False(t, acquire(t, l, "k", 1).Allowed, "denials were not charged, nor forgiven")
		})
	}
}
