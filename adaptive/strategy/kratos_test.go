package strategy_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

// kratosOn is CompatKratos with a signal, where 1 is 80 %.
func kratosOn(s signal.Signal) adaptive.Strategy {
	return strategy.CompatKratos(strategy.WithSignal(s))
}

// hotKratos is a compatible limiter on a busy machine.
func hotKratos(t *testing.T) (*adaptive.Limiter, adaptive.Strategy, *dial) {
	cpu := new(dial)
	cpu.set(1.02)
	s := kratosOn(cpu)
	for range 80 { // the average starts at 0
		time.Sleep(500 * time.Millisecond)
		s.Observe(adaptive.Sample{RTT: time.Microsecond})
	}
	time.Sleep(11 * time.Second)
	return newLimiter(t, s), s, cpu
}

// TestKratosFigures: passes of 100, 200, ... 1000 and durations of 1..10,
// 11..20, ... make 1000 and 6, hence 1000 * 6 * 10 / 1000 = 60, and one more.
func TestKratosFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s, _ := hotKratos(t)
		for i := range 10 {
			for j := range (i + 1) * 100 {
				s.Observe(adaptive.Sample{RTT: time.Duration(10*i+1+j%10) * time.Millisecond})
			}
			time.Sleep(100 * time.Millisecond)
		}
		require.Equal(t, 61, s.Limit())
		time.Sleep(10 * time.Second)
		require.Equal(t, 2, s.Limit(), "nothing counts any longer")
	})
}

// TestKratosWithoutData: both factors are 1; two requests may be in flight.
func TestKratosWithoutData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _, _ := hotKratos(t)
		leases := fill(t, l, 100)
		require.Len(t, leases, 2)
		releaseAll(leases, algo.Succeeded|algo.Untimed)
	})
}

// TestKratosRounds: single durations down, as published, the mean up.
func TestKratosRounds(t *testing.T) {
	for _, row := range []struct {
		rtts []time.Duration
		want int
	}{
		{[]time.Duration{999 * time.Microsecond}, 1*100*1*10/1000 + 1},
		{[]time.Duration{1999 * time.Microsecond}, 1*100*1*10/1000 + 1},
		{[]time.Duration{2 * time.Millisecond}, 1*100*2*10/1000 + 1},
		{[]time.Duration{2 * time.Millisecond, 3 * time.Millisecond}, 1*100*3*10/1000 + 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, s, _ := hotKratos(t)
			for i := range 100 {
				s.Observe(adaptive.Sample{RTT: row.rtts[i%len(row.rtts)]})
			}
			time.Sleep(100 * time.Millisecond)
			require.Equal(t, max(row.want, 2), s.Limit())
		})
	}
}

// TestKratosCoolDown: the cool-down is one second from the first denial of the
// episode, so a long episode has none, which is a fault of the original.
func TestKratosCoolDown(t *testing.T) {
	for _, row := range []struct {
		episode time.Duration
		want    bool
	}{{400 * time.Millisecond, true}, {time.Minute, false}} {
		synctest.Test(t, func(t *testing.T) {
			l, s, cpu := hotKratos(t)
			leases := fill(t, l, 100)
			for range row.episode / (100 * time.Millisecond) {
				time.Sleep(100 * time.Millisecond)
				require.False(t, acquire(t, l, "", 1).Allowed)
			}
			cpu.set(0) // the average falls below 80 % with the next sample
			time.Sleep(500 * time.Millisecond)
			s.Observe(adaptive.Sample{RTT: time.Microsecond})
			require.Equal(t, row.want, s.Limit() < unlimited)
			time.Sleep(time.Second)
			require.Equal(t, unlimited, s.Limit())
			releaseAll(leases, algo.Succeeded|algo.Untimed)
		})
	}
}

// TestKratosIsSlow: it takes 16 s to notice a processor that becomes busy.
func TestKratosIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := new(dial)
		cpu.set(1.25)
		s := kratosOn(cpu)
		start := time.Now()
		for s.Limit() == unlimited {
			time.Sleep(100 * time.Millisecond)
			s.Observe(adaptive.Sample{RTT: time.Millisecond})
		}
		require.InDelta(t, 16*time.Second, time.Since(start), 1e9)
	})
}

func TestCompatKratosIsOpen(t *testing.T) {
	l := newLimiter(t, strategy.CompatKratos())
	lease := acquire(t, l, "", 1)
	require.True(t, lease.Allowed)
	lease.Release(algo.Succeeded)
	e := l.Explain().Strategies[0]
	require.Equal(t, "kratos", e.Name)
	require.Equal(t, "cpu", e.Signal)
}
