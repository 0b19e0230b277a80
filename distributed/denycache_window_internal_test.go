package distributed

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// windowOracle is one key of a window as its script should keep it.
type windowOracle interface {
	run(t *testing.T, now int64, a remote.Args) (reply []int64)
	fits(t *testing.T, now, n int64) bool
}

// fixedOracle is a fixed window.
type fixedOracle struct{ fixedModel }

func (o *fixedOracle) run(t *testing.T, now int64, a remote.Args) []int64 {
	s, got := windowStep{op: a[0], n: a[3], long: a[1]}, []int64{0, 0, 0}
	switch a[0] {
	case opRefund:
		s.charge = algo.Handle{N: a[3], State: [3]int64{a[4], a[5]}}
	case opBan:
		got = []int64{max(o.until, now+a[1]), o.voided, flagBanned}
	}
	if reply := o.fixedModel.run(t, now, s, got); reply != nil {
		return reply
	}
	return got
}

func (o *fixedOracle) fits(t *testing.T, now, n int64) bool {
	m := o.fixedModel
	return m.run(t, now, windowStep{op: opAcquire, n: n}, nil)[2] == flagAdmitted
}

// slidingOracle is a sliding window.
type slidingOracle struct {
	l                          *slidingWindow
	index, older, newer, until int64
}

func (o *slidingOracle) run(t *testing.T, now int64, a remote.Args) []int64 {
	switch i := now / o.l.period; i - o.index {
	case 0:
	case 1:
		o.index, o.older, o.newer = i, o.newer, 0
	default:
		o.index, o.older, o.newer = i, 0, 0
	}
	switch {
	case a[0] == opBan:
		o.until, o.older, o.newer = now+a[1], 0, 0
		return []int64{o.until, 0, 0, 0, flagBanned}
	case o.until > now:
		return []int64{o.until, 0, 0, 0, flagBanned}
	case a[0] == opRefund && a[2] == o.index:
		o.newer -= a[3]
	case a[0] == opRefund && a[2] == o.index-1:
		o.older -= a[4]
	}
	reply := []int64{o.index, o.older, o.newer, 0, flagDenied}
	if a[0] == opAcquire && o.fits(t, now, a[3]) {
		o.newer += a[3]
		reply[4] = flagAdmitted
	}
	return reply
}

func (o *slidingOracle) fits(_ *testing.T, now, n int64) bool {
	s := o.l.decide.State(o.index, o.older, o.newer)
	_, a, _ := o.l.decide.Answer(&s, now, n)
	return a.Allowed && o.until <= now
}

// windowRig is an instance before a virtual server with one key of a window.
type windowRig struct {
	t       *testing.T
	server  *virtualServer
	mu      sync.Mutex // guards the oracle
	oracle  windowOracle
	limiter *Limiter
	denials int
	leases  []algo.Lease
}

func newWindowRig(t *testing.T, text string) *windowRig {
	w := &windowRig{t: t, server: newVirtualServer(perMicros(1, time.Second), 1)}
	w.server.windows = func(now int64, a remote.Args) []int64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.oracle.run(t, now, a)
	}
	w.server.setBack(123_457 * time.Microsecond) // the clocks differ
	store, err := NewWithTransport(&virtualTransport{server: w.server, sent: func() {}},
		WithLogger(slog.New(slog.DiscardHandler)), WithInstances(1), WithFallback(FallbackAllow))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	spec, err := algo.Parse(text)
	require.NoError(t, err)
	w.limiter, err = store.Limiter("a", spec)
	require.NoError(t, err)
	switch l := w.limiter.load().(type) {
	case *fixedWindow:
		w.oracle = &fixedOracle{fixedModel{l: l}}
	case *slidingWindow:
		w.oracle = &slidingOracle{l: l}
	}
	return w
}

// fits asks the oracle after a time.
func (w *windowRig) fits(after time.Duration, n int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.oracle.fits(w.t, w.now()+after.Microseconds(), n)
}

// now is the server's time.
func (w *windowRig) now() int64 { return time.Now().UnixMicro() - w.server.back }

// acquire asks for n units: Redis would deny each denial of the cache at the same
// instant.
func (w *windowRig) acquire(n int64) {
	fits := w.fits(0, n)
	lease, err := w.limiter.Acquire(w.t.Context(), "k", n)
	require.NoError(w.t, err)
	if lease.Allowed {
		w.leases = append(w.leases, lease)
	}
	if lease.Source != algo.SourceDenyCache {
		require.Equal(w.t, algo.SourceRemote, lease.Source)
		return
	}
	w.denials++
	require.False(w.t, lease.Allowed)
	require.False(w.t, fits, "%d units: %+v", n, lease.Decision)
	require.True(w.t, w.fits(lease.RetryAfter, n), "after RetryAfter: %+v", lease.Decision)
}

// TestL2_DenyCacheOfWindows: whatever the cache denies, Redis would deny at that instant, over
// the edges of windows, after refunds, resets and bans; and waiting for RetryAfter suffices.
func TestL2_DenyCacheOfWindows(t *testing.T) {
	for _, text := range []string{
		"fixed-window 3/20ms", "fixed-window 4/50ms offset 7ms", "fixed-window 5/3s spread",
		"sliding-window 3/20ms", "sliding-window 5/50ms", "sliding-window 7/3s",
	} {
		t.Run(text, func(t *testing.T) {
			freshRequests(t)
			synctest.Test(t, func(t *testing.T) {
				w, rnd := newWindowRig(t, text), rand.New(rand.NewPCG(7, 8))
				period := w.limiter.spec.Rate.Period
				n := max(cases.Count(20_000, 400_000), 2000)
				for range n {
					switch rnd.IntN(100) {
					case 0:
						if n := len(w.leases); n > 0 {
							w.leases[n-1].Release(algo.Canceled)
						}
						time.Sleep(2 * simulatedTrip)
					case 1:
						if rnd.IntN(20) == 0 {
							require.NoError(t, w.limiter.Ban(t.Context(), "k", period/3))
							w.leases = nil
						}
					default:
						w.acquire(1 + rnd.Int64N(3))
					}
					time.Sleep(time.Duration(rnd.Int64N(int64(period / 20))))
				}
				require.Greater(t, w.denials, n/20)
				t.Logf("L2: %d denials of %q without Redis", w.denials, text)
			})
		})
	}
}

// A window that begins between the proof and the decision is not denied by the one before.
func TestDenyCacheEndsWithTheWindow(t *testing.T) {
	freshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWindowRig(t, "fixed-window 1/100ms")
		for range 50 {
			w.acquire(1)
			w.acquire(1)
			lease, err := w.limiter.Acquire(t.Context(), "k", 1)
			require.NoError(t, err)
			require.Equal(t, algo.SourceDenyCache, lease.Source)
			time.Sleep(lease.RetryAfter + time.Millisecond)
			lease, err = w.limiter.Acquire(t.Context(), "k", 1)
			require.NoError(t, err)
			require.True(t, lease.Allowed)
			time.Sleep(100 * time.Millisecond)
		}
	})
}
