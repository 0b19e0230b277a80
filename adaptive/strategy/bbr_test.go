package strategy_test

import (
	"math"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/wiring"
)

const unlimited = math.MaxInt32

// dial is a signal that a test sets.
type dial struct{ bits atomic.Uint64 }

func (d *dial) set(level float64) { d.bits.Store(math.Float64bits(level)) }
func (d *dial) Read() (float64, bool) {
	level := math.Float64frombits(d.bits.Load())
	return level, level >= 0
}

func (d *dial) String() string { return "dial" }

func newBBR(t testing.TB, opts ...adaptive.Option) adaptive.Strategy {
	t.Helper()
	s := strategy.BBR(append([]adaptive.Option{adaptive.WithLimits(1, unlimited)}, opts...)...)
	require.NoError(t, wiring.Check(s))
	return s
}

// observe lets work complete at a rate, each after rtt, for d.
func observe(s adaptive.Strategy, every, rtt, d time.Duration) {
	for range d / every {
		time.Sleep(every)
		s.Observe(adaptive.Sample{RTT: rtt, InFlight: 1})
	}
}

// TestBBRLimit: the product of rate and response time, plus a
// quarter, while overloaded; no limit otherwise.
func TestBBRLimit(t *testing.T) {
	for name, row := range map[string]struct {
		every, rtt time.Duration
		opts       []adaptive.Option
		want       float64
	}{
		"1000/s of 50 ms":          {time.Millisecond, 50 * time.Millisecond, nil, 62.5},
		"50/s of 2 s":              {20 * time.Millisecond, 2 * time.Second, nil, 125},
		"10000/s of 50 us":         {100 * time.Microsecond, 50 * time.Microsecond, nil, 1},
		"buckets of ten seconds":   {time.Millisecond, 50 * time.Millisecond, []adaptive.Option{strategy.WithWindow(time.Minute, 6)}, 62.5},
		"buckets of 7 ms":          {time.Millisecond, 50 * time.Millisecond, []adaptive.Option{strategy.WithWindow(7*time.Second, 1000)}, 62.5},
		"few samples for a bucket": {130 * time.Millisecond, time.Second, nil, 9.6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cpu := new(dial)
				s := newBBR(t, append(row.opts, strategy.WithSignal(cpu))...)
				observe(s, row.every, row.rtt, 25*time.Second)
				require.Equal(t, unlimited, s.Limit())
				cpu.set(2)
				observe(s, row.every, row.rtt, 3*time.Second)
				require.InDelta(t, row.want, s.Limit(), 1+row.want/8)
			})
		})
	}
}

// TestBBRLongEpisode: ten minutes of overload teach nothing about the normal
// response time, and the limit holds for one second after the last sign.
func TestBBRLongEpisode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := new(dial)
		s := newBBR(t, strategy.WithSignal(cpu))
		const every = time.Millisecond
		observe(s, every, 50*time.Millisecond, 20*time.Second)
		cpu.set(1.2)
		observe(s, every, 5*time.Second, 10*time.Minute)
		require.InDelta(t, 63, s.Limit(), 3)

		cpu.set(0)
		observe(s, every, 5*time.Second, time.Second)
		require.InDelta(t, 63, s.Limit(), 3, "it cools down")
		observe(s, every, 5*time.Second, 300*time.Millisecond)
		require.Equal(t, unlimited, s.Limit())

		// Work that began in the episode ends after it, and is no sample.
		observe(s, every, 4*time.Second, 2*time.Second)
		cpu.set(9)
		observe(s, every, 50*time.Millisecond, time.Second)
		require.InDelta(t, 63, s.Limit(), 3)
	})
}

// TestBBRHysteresis: it enters at the threshold and leaves at nine tenths.
func TestBBRHysteresis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := new(dial)
		s := newBBR(t, strategy.WithSignal(cpu))
		limited := func(level float64) bool {
			cpu.set(level)
			observe(s, 10*time.Millisecond, time.Millisecond, 5*time.Second)
			return s.Limit() < unlimited
		}
		require.False(t, limited(.95))
		require.True(t, limited(1.05))
		require.True(t, limited(.95))
		require.False(t, limited(.85))
		require.False(t, limited(.95))
	})
}

// TestBBRSmoothsByTime: a short peak is no overload, whether it is read often
// or rarely.
func TestBBRSmoothsByTime(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 90 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			cpu := new(dial)
			s := newBBR(t, strategy.WithSignal(cpu))
			observe(s, every, time.Millisecond, 5*time.Second)
			cpu.set(1.5)
			observe(s, every, time.Millisecond, 180*time.Millisecond)
			require.Equal(t, unlimited, s.Limit())
			cpu.set(0)
			observe(s, every, time.Millisecond, 5*time.Second)
			cpu.set(1.5)
			observe(s, every, time.Millisecond, 900*time.Millisecond)
			require.Less(t, s.Limit(), unlimited)
		})
	}
}

// TestColdStartOnAHotMachine: without an estimate the limit is 20 or more.
func TestColdStartOnAHotMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := new(dial)
		cpu.set(1.3)
		l := newLimiter(t, newBBR(t, strategy.WithSignal(cpu)))
		leases := fill(t, l, 100)
		require.GreaterOrEqual(t, len(leases), 20)
		require.Equal(t, max(20, 4*runtime.GOMAXPROCS(0)), l.Limit())
		denied := acquire(t, l, "", 1)
		require.Equal(t, algo.Overload, denied.Reason)
		e := l.Explain().Strategies[0]
		require.True(t, e.Overloaded)
		require.Equal(t, "dial", e.Cause)
		require.InDelta(t, 1.3, e.Level, 1e-9)
		releaseAll(leases, algo.Succeeded)
	})
}

// TestC2_OverloadIsNotTheNormalState: the response times of an overload do not count,
// however short the calm after it. The estimate is unknown or comes from the calm.
func TestC2_OverloadIsNotTheNormalState(t *testing.T) {
	for calm := 500 * time.Millisecond; calm < 8*time.Second; calm += 250 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			cpu := new(dial)
			s := newBBR(t, strategy.WithSignal(cpu))
			cpu.set(1.3)
			observe(s, 10*time.Millisecond, 10*time.Millisecond, 10*time.Millisecond) // the first look
			observe(s, 10*time.Millisecond, 5*time.Second, 30*time.Second)
			cpu.set(.1)
			observe(s, 10*time.Millisecond, 10*time.Millisecond, calm)
			cpu.set(1.3)
			observe(s, 10*time.Millisecond, 5*time.Second, 5*time.Second)
			require.LessOrEqual(t, s.Limit(), max(20, 4*runtime.GOMAXPROCS(0)), "after %v", calm)
		})
	}
}

// TestC2_FastErrorsAreNoSamples: 150 ms of immediate errors, after normal work, do not
// change the limit.
func TestC2_FastErrorsAreNoSamples(t *testing.T) {
	for _, errors := range []int{0, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			cpu := new(dial)
			l := newLimiter(t, newBBR(t, strategy.WithSignal(cpu)))
			pipeline(t, l, 50, 20*time.Second)
			for range errors {
				time.Sleep(15 * time.Microsecond)
				lease := acquire(t, l, "", 1)
				lease.Release(algo.Failed)
			}
			cpu.set(2)
			pipeline(t, l, 50, time.Second)
			require.InDelta(t, 63, l.Limit(), 4, "%d errors", errors)
		})
	}
}

// pipeline keeps n requests in flight that take n ms each, one ending every
// millisecond, for d.
func pipeline(t *testing.T, l *adaptive.Limiter, n int, d time.Duration) {
	t.Helper()
	leases := make([]algo.Lease, n)
	for i := range d / time.Millisecond {
		time.Sleep(time.Millisecond)
		at := int(i) % n
		leases[at].Release(algo.Succeeded)
		leases[at] = acquire(t, l, "", 1)
	}
	releaseAll(leases, algo.Succeeded|algo.Untimed)
}

// TestHungDependency: nothing completes for a second, which is overload although the
// processor idles.
func TestHungDependency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, newBBR(t, strategy.WithSignal(new(dial))))
		pipeline(t, l, 50, 20*time.Second)
		time.Sleep(time.Minute)
		require.Equal(t, unlimited, l.Limit(), "an idle service does not hang")

		var hung []algo.Lease
		for range 400 { // 200 requests a second
			time.Sleep(5 * time.Millisecond)
			if lease := acquire(t, l, "", 1); lease.Allowed {
				hung = append(hung, lease)
			}
		}
		require.InDelta(t, 210, len(hung), 15, "none after the first second")
		e := l.Explain().Strategies[0]
		require.True(t, e.Overloaded)
		require.Equal(t, "nothing completes", e.Cause)

		releaseAll(hung, algo.Failed) // they time out, and it is over
		for range 120 {
			time.Sleep(10 * time.Millisecond)
			lease := acquire(t, l, "", 1)
			time.Sleep(time.Millisecond)
			lease.Release(algo.Succeeded)
		}
		require.Equal(t, unlimited, l.Limit())
	})
}

// TestSlowServiceDoesNotHang: where the baseline is long, a hang is five baselines, not
// one second.
func TestSlowServiceDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, newBBR(t, strategy.WithSignal(new(dial))))
		pipeline(t, l, 3000, 40*time.Second)
		var leases []algo.Lease
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			leases = append(leases, acquire(t, l, "", 1))
		}
		require.Equal(t, unlimited, l.Limit())
		releaseAll(leases, algo.Succeeded|algo.Untimed)
	})
}

// TestBBRDrains: while more is in flight than allowed, the limit stays.
func TestBBRDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := new(dial)
		s := newBBR(t, strategy.WithSignal(cpu))
		observe(s, time.Millisecond, 50*time.Millisecond, 20*time.Second)
		cpu.set(2)
		observe(s, time.Millisecond, 50*time.Millisecond, 2*time.Second)
		before := s.Limit()
		slow := func(inFlight int) int { // the rate falls to a tenth, and the old one is forgotten
			for range 2000 {
				time.Sleep(10 * time.Millisecond)
				s.Observe(adaptive.Sample{RTT: time.Second, InFlight: inFlight})
			}
			return s.Limit()
		}
		require.Equal(t, before, slow(10*before))
		require.Less(t, slow(1), before/5)
	})
}

// TestC2_FailedSignal: a signal that cannot be read is no overload, and visible.
func TestC2_FailedSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
			cpu := new(dial)
			l := newLimiter(t, newBBR(t, strategy.WithSignal(cpu)))
			cpu.set(3)
			pipeline(t, l, 5, 2*time.Second)
			require.Less(t, l.Limit(), unlimited)
			cpu.set(bad)
			pipeline(t, l, 5, 2*time.Second)
			require.Equal(t, unlimited, l.Limit())
			require.False(t, l.Explain().Strategies[0].Known)
			require.Contains(t, l.Explain().String(), "dial unknown")
		}
	})
}

func TestC2_BBRKeepsItsLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cpu := new(dial)
		s := strategy.BBR(strategy.WithSignal(cpu), adaptive.WithLimits(30, 40))
		require.Equal(t, 40, s.Limit())
		observe(s, time.Millisecond, time.Millisecond, 20*time.Second)
		cpu.set(2)
		observe(s, time.Millisecond, time.Millisecond, 2*time.Second)
		require.Equal(t, 30, s.Limit())
		require.True(t, acquire(t, newLimiter(t, s), "", 41).Allowed, "a request is one, whatever it costs")
	})
}

func TestBBRErrors(t *testing.T) {
	for want, o := range map[string]adaptive.Option{
		"buckets is 1":             strategy.WithWindow(time.Second, 1),
		"bucket width is 0s":       strategy.WithWindow(time.Nanosecond, 10),
		"signal is nil":            strategy.WithSignal(nil),
		"signal function is nil":   strategy.WithSignal(signal.Func(nil)),
		"cpu signal: Threshold":    strategy.WithSignal(signal.CPU(signal.Threshold(0))),
		"load1 signal: Threshold":  strategy.WithSignal(signal.MaxOf(signal.Load1(signal.Threshold(math.NaN())))),
		"does not take the option": adaptive.WithPriorities(),
		"lower limit is -1":        adaptive.WithLimits(-1, 5),
		"upper limit is 4":         adaptive.WithLimits(5, 4),
	} {
		_, err := adaptive.New(strategy.BBR(o))
		require.ErrorContains(t, err, want)
	}
	if strconv.IntSize == 64 {
		large := int64(1) << 31
		_, err := adaptive.New(strategy.BBR(adaptive.WithLimits(1, int(large))))
		require.ErrorContains(t, err, "upper limit is 2147483648")
	}
}

func TestBBRAllocations(t *testing.T) {
	var l algo.Limiter = newLimiter(t, newBBR(t, strategy.WithSignal(new(dial))))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		lease, _ := l.Acquire(background, "", 1)
		lease.Release(algo.Succeeded)
	}))
}
