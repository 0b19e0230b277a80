package adaptive_test

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

// TestMain: no test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

var acquire, fill, releaseAll = fakes.Acquire, fakes.Fill, fakes.ReleaseAll

func newLimiter(t testing.TB, s adaptive.Strategy, opts ...adaptive.Option) *adaptive.Limiter {
	t.Helper()
	l, err := adaptive.New(s, opts...)
	require.NoError(t, err)
	return l
}

// gated is a constant limit behind a gate that admits every request.
type gated int

func (g gated) Limit() int              { return int(g) }
func (gated) Observe(adaptive.Sample)   {}
func (gated) Admits(time.Duration) bool { return true }
func (gated) Full() bool                { return false }

// open is a gate that admits every request. It counts requests.
type open struct{ gated }

func (open) Admitted(time.Duration, int64, int64)           {}
func (open) Finished(adaptive.Sample, int64)                {}
func (open) Denied(time.Duration, int64, int64, algo.Cause) {}

// dial is a signal that a test sets.
type dial struct{ bits atomic.Uint64 }

func (d *dial) set(level float64) { d.bits.Store(math.Float64bits(level)) }
func (d *dial) Read() (float64, bool) {
	level := math.Float64frombits(d.bits.Load())
	return level, level >= 0
}

func (d *dial) String() string { return "dial" }

const unlimited = math.MaxInt32

func newBBR(s signal.Signal) adaptive.Strategy {
	return strategy.BBR(adaptive.WithLimits(1, unlimited), strategy.WithSignal(s))
}
