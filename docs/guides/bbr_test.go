package guides_test

import (
	"log"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
)

// backlogged limits by a backlog: at most 100 jobs may wait.
func backlogged(backlog *atomic.Int64) (*adaptive.Limiter, error) {
	waiting := signal.Func(func() (level float64, ok bool) { return float64(backlog.Load()) / 100, true })
	return adaptive.New(strategy.BBR(strategy.WithSignal(waiting)))
}

// loadStep sends 500 requests a second, and 3000 from the 20th to the 50th, to 50 workers that need 50 ms
// for one, and returns the answers in the last 20 seconds of the step that took half a second at most.
func loadStep(t *testing.T, backlog *atomic.Int64, l *adaptive.Limiter) (inTime int64) {
	start, workers := time.Now(), make(chan struct{}, 50)
	var good atomic.Int64
	request := func() {
		lease, err := l.Acquire(t.Context(), "", 1)
		if err != nil || !lease.Allowed {
			return
		}
		defer lease.Release(algo.Succeeded)
		asked := time.Now()
		backlog.Add(1)
		workers <- struct{}{}
		backlog.Add(-1)
		time.Sleep(50 * time.Millisecond)
		<-workers
		second := time.Since(start) / time.Second
		if second >= 30 && second < 50 && time.Since(asked) <= 500*time.Millisecond {
			good.Add(1)
		}
	}
	for i := range 200_000 {
		second := time.Since(start) / time.Second
		if second >= 60 {
			break
		}
		every := 2 * time.Millisecond // 500 a second
		if second >= 20 && second < 50 {
			every = time.Second / 3000
		}
		time.Sleep(every)
		if i%5000 == 0 {
			log.Println(l.Explain())
		}
		go request()
	}
	for l.InFlight() > 0 {
		time.Sleep(time.Second)
	}
	return good.Load()
}

// TestLoadStep: with BBR at least nine tenths of the capacity are answers in time, without a limit nearly none.
func TestLoadStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var backlog atomic.Int64
		l, err := backlogged(&backlog)
		require.NoError(t, err)
		require.Greater(t, loadStep(t, &backlog, l), int64(.9*20*1000))
		t.Log(l.Explain())
		require.Less(t, loadStep(t, new(atomic.Int64), algo.Must(adaptive.New(adaptive.Fixed(1<<30)))), int64(.1*20*1000))
	})
}
