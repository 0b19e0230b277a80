package adaptive_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

// visit is one request to a limiter with a queue.
type visit struct {
	id    int
	lease algo.Lease
	err   error
	took  time.Duration
}

// visitors sends requests to a limiter, each in its own goroutine, and records the
// order in which they return.
type visitors struct {
	l    *adaptive.Limiter
	mu   sync.Mutex
	back []*visit
}

// send starts a request of n units, and returns when it waits or has returned.
func (v *visitors) send(ctx context.Context, id int, n int64) {
	go func() {
		start := time.Now()
		lease, err := v.l.Acquire(ctx, "", n)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.back = append(v.back, &visit{id, lease, err, time.Since(start)})
	}()
	synctest.Wait()
}

// ids are the admitted requests, in order of return.
func (v *visitors) ids() (ids []int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.back {
		if one.lease.Allowed {
			ids = append(ids, one.id)
		}
	}
	return ids
}

// all are the returned requests, in order.
func (v *visitors) all() []*visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.back)
}

// leave releases the lease of the i-th returned request.
func (v *visitors) leave(i int) {
	v.all()[i].lease.Release(algo.Succeeded)
	synctest.Wait()
}

func queued(t *testing.T, s adaptive.Strategy, q adaptive.Queue) *visitors {
	return &visitors{l: newLimiter(t, s, adaptive.WithQueue(q))}
}

func TestFIFOServesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := queued(t, adaptive.Fixed(2), adaptive.FIFO(10, time.Second))
		for i := range 6 {
			v.send(background, i, 1)
		}
		require.Equal(t, []int{0, 1}, v.ids())
		require.Equal(t, 4, v.l.Explain().Waiting)
		for i := range 4 {
			v.leave(i)
		}
		require.Equal(t, []int{0, 1, 2, 3, 4, 5}, v.ids())
		v.leave(4)
		v.leave(5)
		require.Zero(t, v.l.InFlight())
	})
}

// TestFIFOKeepsTheOrder: while requests wait, a new one goes to the end, also if it
// would fit.
func TestFIFOKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := queued(t, adaptive.Fixed(3), adaptive.FIFO(10, time.Second))
		v.send(background, 0, 2)
		v.send(background, 1, 3) // does not fit
		v.send(background, 2, 1) // would
		require.Equal(t, []int{0}, v.ids())
		v.leave(0)
		require.Equal(t, []int{0, 1}, v.ids())
		v.leave(1)
		require.Equal(t, []int{0, 1, 2}, v.ids())
		v.leave(2)
	})
}

func TestFIFODeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := queued(t, adaptive.Fixed(1), adaptive.FIFO(2, 300*time.Millisecond))
		for i := range 4 {
			v.send(background, i, 1)
		}
		require.Len(t, v.all(), 2)
		full := v.all()[1]
		require.Equal(t, 3, full.id, "no room to wait in")
		require.Equal(t, algo.Overload, full.lease.Reason)
		require.Zero(t, full.took)
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		require.Len(t, v.all(), 4)
		for _, late := range v.all()[2:] {
			require.NoError(t, late.err)
			require.Equal(t, algo.Overload, late.lease.Reason)
			require.Positive(t, late.lease.RetryAfter)
			require.Equal(t, 300*time.Millisecond, late.took)
		}
		require.Equal(t, adaptive.Denials{Queue: 3}, v.l.Explain().Denied)
		v.leave(0)
		require.Zero(t, v.l.InFlight())
	})
}

// TestWaitersThatLeave: a canceled wait leaves the queue at once and returns the
// error of the context; a hundred of them do not delay the next request.
func TestWaitersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := queued(t, adaptive.Fixed(1), adaptive.FIFO(100, time.Hour))
		v.send(background, 0, 1)
		ctx, cancel := context.WithCancel(background)
		for i := range 100 {
			v.send(ctx, 1+i, 1)
		}
		require.Equal(t, 100, v.l.Explain().Waiting)
		cancel()
		synctest.Wait()
		require.Zero(t, v.l.Explain().Waiting)
		for _, one := range v.all()[1:] {
			require.ErrorIs(t, one.err, context.Canceled)
			require.False(t, one.lease.Allowed)
		}
		v.send(background, 200, 1)
		v.leave(0)
		require.Equal(t, []int{0, 200}, v.ids())

		short, stop := context.WithTimeout(background, time.Second)
		defer stop()
		v.send(short, 300, 1)
		v.send(ctx, 301, 1)
		require.ErrorIs(t, v.all()[len(v.all())-1].err, context.Canceled, "already ended")
		time.Sleep(time.Second)
		synctest.Wait()
		last := v.all()[len(v.all())-1]
		require.Equal(t, 300, last.id)
		require.ErrorIs(t, last.err, context.DeadlineExceeded)
		require.Equal(t, time.Second, last.took)
	})
}

// TestLargeWaiterLeaves: requests behind it that fit are then admitted.
func TestLargeWaiterLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := queued(t, adaptive.Fixed(4), adaptive.FIFO(10, time.Hour))
		v.send(background, 0, 1)
		ctx, cancel := context.WithCancel(background)
		v.send(ctx, 1, 4)
		v.send(background, 2, 1)
		v.send(background, 3, 2)
		require.Equal(t, []int{0}, v.ids())
		cancel()
		synctest.Wait()
		require.ElementsMatch(t, []int{0, 2, 3}, v.ids())
		require.Equal(t, 4, v.l.InFlight())
	})
}

// TestRaisedLimitWakes: also without a release or another request.
func TestRaisedLimitWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newRecorder(1)
		v := queued(t, p, adaptive.FIFO(10, time.Hour))
		for i := range 5 {
			v.send(background, i, 1)
		}
		require.Equal(t, []int{0}, v.ids())
		p.limit.Store(3)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		require.ElementsMatch(t, []int{0, 1, 2}, v.ids())
		p.limit.Store(10)
		v.leave(0) // by a release at once
		require.ElementsMatch(t, []int{0, 1, 2, 3, 4}, v.ids())
	})
}

func TestSettlingDownWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := queued(t, adaptive.Fixed(4), adaptive.FIFO(10, time.Hour))
		v.send(background, 0, 4)
		v.send(background, 1, 2)
		v.all()[0].lease.Settle(2)
		synctest.Wait()
		require.Equal(t, []int{0, 1}, v.ids())
		require.Equal(t, 4, v.l.InFlight())
	})
}

func TestCloseWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := queued(t, adaptive.Fixed(1), adaptive.CoDel(10, 0, time.Hour))
		for i := range 4 {
			v.send(background, i, 1)
		}
		require.NoError(t, v.l.Close())
		synctest.Wait()
		require.Len(t, v.all(), 4)
		for _, one := range v.all()[1:] {
			require.ErrorIs(t, one.err, adaptive.ErrClosed)
		}
		v.leave(0)
		require.Zero(t, v.l.InFlight())
	})
}

// TestCoDelBurst: a queue that was recently empty is a burst. Requests are served in
// order and may wait for the interval.
func TestCoDelBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := queued(t, adaptive.Fixed(1), adaptive.CoDel(10, 5*time.Millisecond, 100*time.Millisecond))
		for i := range 4 {
			v.send(background, i, 1)
		}
		for i := range 3 {
			time.Sleep(30 * time.Millisecond)
			v.leave(i)
		}
		require.Equal(t, []int{0, 1, 2, 3}, v.ids())
		v.leave(3)
	})
}

// TestCoDelStanding: in a queue that has not been empty for an interval the newest is
// first, new requests wait for the target only, and when it is full the oldest is
// denied.
func TestCoDelStanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := queued(t, adaptive.Fixed(1), adaptive.CoDel(3, 5*time.Millisecond, 100*time.Millisecond))
		v.send(background, 0, 1)
		v.send(background, 1, 1)
		for i := range 3 { // the queue is never empty
			time.Sleep(40 * time.Millisecond)
			v.send(background, 10+i, 1)
		}
		// 1 has given up after 100 ms; 10 and 11 wait, and 12 for 5 ms.
		require.Len(t, v.all(), 2)
		require.Equal(t, 1, v.all()[1].id)
		require.Equal(t, 3, v.l.Explain().Waiting)
		v.send(background, 20, 1)
		require.Equal(t, 10, v.all()[2].id, "the oldest makes room")
		require.False(t, v.all()[2].lease.Allowed)
		v.leave(0)
		require.Equal(t, []int{0, 20}, v.ids(), "the newest first")
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		last := v.all()[len(v.all())-1]
		require.Equal(t, 12, last.id)
		require.Equal(t, 5*time.Millisecond, last.took)
		require.False(t, last.lease.Allowed)

		time.Sleep(100 * time.Millisecond) // all have gone: a burst again
		synctest.Wait()
		v.send(background, 30, 1)
		v.send(background, 31, 1)
		v.leave(3)
		require.Equal(t, []int{0, 20, 30}, v.ids())
		v.leave(len(v.all()) - 1)
		require.Equal(t, []int{0, 20, 30, 31}, v.ids())
	})
}

// TestNoLostWakeups: a thousand requests through three slots, some canceled or out of
// time. All others are served, and the queue is empty in the end.
func TestNoLostWakeups(t *testing.T) {
	for _, q := range []adaptive.Queue{adaptive.FIFO(1000, time.Hour), adaptive.CoDel(1000, time.Hour, time.Hour)} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, adaptive.Fixed(3), adaptive.WithQueue(q))
			var done sync.WaitGroup
			var served, gone [1000]bool
			for i := range served {
				done.Go(func() {
					time.Sleep(time.Duration(i%50) * time.Millisecond)
					ctx, cancel := background, context.CancelFunc(func() {})
					if i%4 == 0 {
						ctx, cancel = context.WithTimeout(background, time.Duration(i%97)*time.Millisecond)
					}
					defer cancel()
					lease, err := l.Acquire(ctx, "", 1+int64(i%3))
					served[i], gone[i] = lease.Allowed, err != nil
					time.Sleep(time.Duration(i%7) * time.Millisecond)
					lease.Release(algo.Succeeded)
				})
			}
			done.Wait()
			require.Zero(t, l.InFlight())
			require.Zero(t, l.Explain().Waiting)
			for i := range served {
				require.False(t, served[i] && gone[i])
				require.True(t, served[i] || i%4 == 0)
			}
		})
	}
}

// TestAdmittedAndGone: a request that is admitted at the moment in which its context
// ends has either the slot or the error of the context, and no slot leaks.
func TestAdmittedAndGone(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, adaptive.Fixed(1), adaptive.WithQueue(adaptive.FIFO(5, time.Minute)))
			held := acquire(t, l, "", 1)
			ctx, cancel := context.WithCancel(background)
			var lease algo.Lease
			var err error
			done := make(chan struct{})
			go func() { lease, err = l.Acquire(ctx, "", 1); close(done) }()
			synctest.Wait()
			held.Release(algo.Succeeded)
			cancel()
			<-done
			require.NotEqual(t, err == nil, !lease.Allowed, "%v", err)
			if err == nil {
				lease.Release(algo.Succeeded)
			}
			require.Zero(t, l.InFlight())
			require.NoError(t, l.Close())
		})
	}
}
