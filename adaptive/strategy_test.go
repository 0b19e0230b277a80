package adaptive_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
)

// constructors are all strategies with their defaults.
var constructors = map[string]func(...adaptive.Option) adaptive.Strategy{
	"AIMD": strategy.AIMD, "BBR": strategy.BBR, "CompatKratos": strategy.CompatKratos, "Default": adaptive.Default,
	"Gradient2": strategy.Gradient2, "RunQueue": adaptive.RunQueue, "Vegas": strategy.Vegas,
	"Fixed": func(...adaptive.Option) adaptive.Strategy { return adaptive.Fixed(5) },
	"Min":   func(...adaptive.Option) adaptive.Strategy { return adaptive.Min(adaptive.Fixed(5), strategy.AIMD()) },
}

const inUse = "adaptive: New: strategy is already in use; make one strategy per limiter"

// TestStrategyBelongsToOneLimiter: its state describes one service.
func TestStrategyBelongsToOneLimiter(t *testing.T) {
	for name, make := range constructors {
		s := make()
		_, err := adaptive.New(s, adaptive.WithQueue(adaptive.FIFO(0, time.Second)))
		require.Error(t, err, "an invalid limiter")
		l, err := adaptive.New(s)
		require.NoError(t, err, "%s: an invalid limiter takes no strategy", name)
		require.NoError(t, l.Close())
		_, err = adaptive.New(s)
		require.EqualError(t, err, inUse, name)

		other := strategy.Vegas()
		_, err = adaptive.New(adaptive.Min(other, adaptive.Min(adaptive.Fixed(1), s)))
		require.EqualError(t, err, inUse, "%s within a Min", name)
		_, err = adaptive.New(adaptive.Min(other, other))
		require.EqualError(t, err, inUse, "twice in one Min")
		_, err = adaptive.New(other)
		require.NoError(t, err, "those beside it are still free")
	}
}

// TestStrategyForOneOfMany: of several concurrent New one succeeds.
func TestStrategyForOneOfMany(t *testing.T) {
	for range 100 {
		s := adaptive.Min(strategy.AIMD(), strategy.Vegas())
		var made atomic.Int64
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() {
				if _, err := adaptive.New(s); err == nil {
					made.Add(1)
				}
			})
		}
		done.Wait()
		require.Equal(t, int64(1), made.Load())
	}
}

// TestStrategyErrors: New reports them, and the strategy is harmless until then.
func TestStrategyErrors(t *testing.T) {
	limits := adaptive.WithLimits(1, 2)
	for name, make := range constructors {
		if name == "Fixed" || name == "Min" {
			continue
		}
		for want, opts := range map[string][]adaptive.Option{
			name + ": the zero Option":                       {{}},
			name + ": does not take the option WithMaxKeys,": {adaptive.WithMaxKeys(5)},
		} {
			s := make(opts...)
			require.Equal(t, 1, s.Limit())
			s.Observe(adaptive.Sample{RTT: time.Second})
			_, err := adaptive.New(s)
			require.ErrorContains(t, err, "adaptive: New: "+want)
			_, err = adaptive.New(adaptive.Min(adaptive.Fixed(1), s))
			require.ErrorContains(t, err, want)
		}
	}
	for want, s := range map[string]adaptive.Strategy{
		"BBR: duplicate option WithLimits":           strategy.BBR(limits, limits),
		"Default: duplicate option WithTarget":       adaptive.Default(adaptive.WithTarget(time.Second), adaptive.WithTarget(time.Second)),
		"CompatKratos: duplicate option WithSignal":  strategy.CompatKratos(strategy.WithSignal(new(dial)), strategy.WithSignal(new(dial))),
		"CompatKratos: signal is nil":                strategy.CompatKratos(strategy.WithSignal(nil)),
		"cpu signal: duplicate option Threshold":     strategy.BBR(strategy.WithSignal(signal.CPU(signal.Threshold(.5), signal.Threshold(.5)))),
		"Gradient2: lower limit is 0, want 1 or mor": strategy.Gradient2(adaptive.WithLimits(0, 0)),
	} {
		_, err := adaptive.New(s)
		require.ErrorContains(t, err, want)
	}
}

// TestLimitsAboveTheStrategy: a lowest limit that the strategy never reaches is an error.
func TestLimitsAboveTheStrategy(t *testing.T) {
	_, err := adaptive.New(adaptive.Fixed(2), adaptive.WithLimits(5, 100))
	require.ErrorContains(t, err, "lowest limit is 5, above the largest of the strategy, 2")
	l := newLimiter(t, adaptive.Fixed(5), adaptive.WithLimits(5, 100))
	require.Equal(t, 5, l.Limit())
}
