package adaptive_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// hanging runs a test with each strategy that limits while a dependency hangs, after 3 s
// of 1000 requests a second of 1 ms.
func hanging(t *testing.T, test func(t *testing.T, l *adaptive.Limiter)) {
	for name, s := range map[string]func() adaptive.Strategy{
		"default": adaptive.Sojourn,
		"bbr":     func() adaptive.Strategy { return newBBR(new(dial)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, s())
				require.Zero(t, calls(t, l, 3000, time.Millisecond, algo.Succeeded))
				test(t, l)
			})
		})
	}
}

// calls has n requests, one after another, and returns the number of denials.
func calls(t *testing.T, l *adaptive.Limiter, n int, d time.Duration, o algo.Outcome) (denials int) {
	t.Helper()
	for range n {
		lease := acquire(t, l, "", 1)
		if !lease.Allowed {
			denials++
		}
		time.Sleep(d)
		lease.Release(o)
	}
	return denials
}

// arrivals has 1000 requests a second for d, each of which ends after took, if it does, and
// returns the number of denials and the most in flight.
func arrivals(t *testing.T, l *adaptive.Limiter, d, took time.Duration, o algo.Outcome) (denials, most int) {
	t.Helper()
	for range d / time.Millisecond {
		lease := acquire(t, l, "", 1)
		switch {
		case !lease.Allowed:
			denials++
		case took > 0:
			time.AfterFunc(took, func() { lease.Release(o) })
		}
		time.Sleep(time.Millisecond)
		most = max(most, l.InFlight())
	}
	return denials, most
}

// TestC2_HangOfWorkThatGivesUp: hung work that its client or its own timeout ends has not
// completed, and does not open the limit. The first success does.
func TestC2_HangOfWorkThatGivesUp(t *testing.T) {
	for _, o := range []algo.Outcome{algo.Failed, algo.Failed | algo.Untimed, algo.Canceled} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			hanging(t, func(t *testing.T, l *adaptive.Limiter) {
				_, most := arrivals(t, l, 8*time.Second, 5*time.Second, o)
				require.LessOrEqual(t, most, 1150, "the arrivals of little more than a second")
				_, most = arrivals(t, l, 20*time.Second, 5*time.Second, o)
				require.LessOrEqual(t, most, 100, "probes, and what took a slot while the excess ended")
				arrivals(t, l, 2*time.Second, time.Millisecond, algo.Succeeded)
				denials, _ := arrivals(t, l, 5*time.Second, time.Millisecond, algo.Succeeded)
				require.Zero(t, denials)
				time.Sleep(5 * time.Second)
			})
		})
	}
}

// TestC2_HangBesideCancellations: a request that is given back says nothing about a hang.
func TestC2_HangBesideCancellations(t *testing.T) {
	hanging(t, func(t *testing.T, l *adaptive.Limiter) {
		for range 60 { // 30 s
			arrivals(t, l, 499*time.Millisecond, 0, algo.Succeeded|algo.Untimed)
			calls(t, l, 1, time.Millisecond, algo.Canceled)
		}
		require.LessOrEqual(t, l.InFlight(), 1200)
	})
}

// TestProbeThatIsGivenBack: another request takes its place.
func TestProbeThatIsGivenBack(t *testing.T) {
	hanging(t, func(t *testing.T, l *adaptive.Limiter) {
		arrivals(t, l, 5*time.Second, 0, algo.Succeeded|algo.Untimed)
		probe := func(o algo.Outcome) (after time.Duration) {
			start := time.Now()
			for calls(t, l, 1, time.Millisecond, o) > 0 && time.Since(start) < time.Minute {
				time.Sleep(60 * time.Millisecond)
			}
			return time.Since(start)
		}
		probe(algo.Canceled)
		time.Sleep(60 * time.Millisecond)
		require.Less(t, probe(algo.Canceled), 200*time.Millisecond)
		time.Sleep(60 * time.Millisecond)
		acquire(t, l, "", 1)
		require.Less(t, probe(algo.Succeeded), 1200*time.Millisecond)
		arrivals(t, l, 2*time.Second, time.Millisecond, algo.Succeeded)
		require.Zero(t, calls(t, l, 1000, time.Millisecond, algo.Succeeded), "work that is lost denies nothing")
	})
}

// TestAnswersOfAnyKindAreNoHang: work that ends without a success does not hang. Where every client leaves
// before it has an answer nobody can tell a queue from work that is slow: Default denies a part, 60 % here.
// Streams are successes.
func TestAnswersOfAnyKindAreNoHang(t *testing.T) {
	for o, most := range map[algo.Outcome]int{
		algo.Failed: 4800, algo.Failed | algo.Untimed: 40000, // of 60 000
		algo.Succeeded | algo.Untimed: 0,
	} {
		hanging(t, func(t *testing.T, l *adaptive.Limiter) {
			first, _ := arrivals(t, l, 40*time.Second, 500*time.Millisecond, o)
			denials, _ := arrivals(t, l, 60*time.Second, 500*time.Millisecond, o)
			require.LessOrEqual(t, denials, most, "%v", o)
			require.LessOrEqual(t, first, 3*most, "%v", o)
			time.Sleep(time.Second)
		})
	}
}

// TestStreamsAreNoHang: ten streams a second of a minute, and one request every four seconds
// from 90 s on.
func TestStreamsAreNoHang(t *testing.T) {
	hanging(t, func(t *testing.T, l *adaptive.Limiter) {
		for i := range 2000 {
			lease := acquire(t, l, "", 1)
			require.True(t, lease.Allowed, "stream %d of %d: %v", i, l.InFlight(), l.Explain())
			time.AfterFunc(time.Minute, func() { lease.Release(algo.Succeeded | algo.Untimed) })
			if i%40 == 0 || i < 900 {
				require.Zero(t, calls(t, l, 1, time.Millisecond, algo.Succeeded))
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
	})
}

// TestSlowFailuresAfterAPause: one that failed slowly long ago does not make a burst a hang.
func TestSlowFailuresAfterAPause(t *testing.T) {
	for _, o := range []algo.Outcome{algo.Failed, algo.Canceled} {
		hanging(t, func(t *testing.T, l *adaptive.Limiter) {
			calls(t, l, 1, 2*time.Second, o)
			time.Sleep(10 * time.Minute)
			denials, _ := arrivals(t, l, 500*time.Millisecond, 200*time.Millisecond, algo.Succeeded)
			require.Zero(t, denials)
			time.Sleep(time.Second)
		})
	}
}

// TestProbeBehindPeeks: where a listener or a tap asks first, and denies, a probe is admitted too.
// A peek that finds no slot changes nothing else.
func TestProbeBehindPeeks(t *testing.T) {
	hanging(t, func(t *testing.T, l *adaptive.Limiter) {
		arrivals(t, l, 3*time.Second, 0, algo.Succeeded|algo.Untimed)
		before := l.Explain().Denied
		denials := 0
		for range 10_000 {
			if acquire(t, l, "", 0).Remaining > 0 {
				denials += calls(t, l, 1, time.Millisecond, algo.Succeeded)
			} else {
				denials++
				time.Sleep(time.Millisecond)
			}
		}
		require.Less(t, denials, 2500, "a second until the probe, and one until the limit ends")
		require.Equal(t, before, l.Explain().Denied)
	})
}

// peeking peeks three times while its only slot is taken.
type peeking struct{ *adaptive.Limiter }

func (p peeking) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	lease, err := p.Limiter.Acquire(ctx, key, n)
	for range 3 {
		if peek, _ := p.Limiter.Acquire(ctx, key, 0); lease.Allowed && peek.Remaining > 0 {
			return lease, errors.New("a slot is free")
		}
	}
	return lease, err
}

// TestPeeksAreNoArrivals: the demand for the processor stays as it is.
func TestPeeksAreNoArrivals(t *testing.T) {
	m := newModel()
	l := m.limiter(t, adaptive.Min(adaptive.RunQueue(m.option()), adaptive.Fixed(1)))
	all := m.serve(t, peeking{l}, time.Millisecond, 1.3, 5*time.Second)
	require.Less(t, longest(all, time.Second), 30*time.Millisecond)
}
