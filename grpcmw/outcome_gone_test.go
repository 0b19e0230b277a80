package grpcmw_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// idle is a processor that the other tests do not load.
var idle = signal.Func(func() (float64, bool) { return 0, true })

// counted counts the calls that a limiter's strategy may learn from as failures.
type counted struct {
	*adaptive.Limiter
	failed atomic.Int64
}

func (c *counted) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	lease, err := c.Limiter.Acquire(ctx, key, n)
	if !lease.Allowed {
		return lease, err
	}
	return algo.NewLease(lease.Decision, &countedLease{c, lease}, algo.Handle{N: n}), err
}

type countedLease struct {
	c     *counted
	lease algo.Lease
}

func (l *countedLease) Release(_ algo.Handle, o algo.Outcome) {
	if o == algo.Failed {
		l.c.failed.Add(1)
	}
	l.lease.Release(o)
}

func (l *countedLease) Settle(_ algo.Handle, n int64) { l.lease.Settle(n) }

// Clients whose deadlines no call can keep lower no adaptive limit, and no honest
// call is denied.
func TestC2_ChosenDeadlinesTeachNothing(t *testing.T) {
	for name, strategy := range map[string]adaptive.Strategy{
		"AIMD":    strategy.AIMD(adaptive.WithLimits(5, 200), strategy.WithInitial(200)),
		"Vegas":   strategy.Vegas(adaptive.WithLimits(1, 200), strategy.WithInitial(200)),
		"BBR":     strategy.BBR(strategy.WithSignal(idle)),
		"Default": adaptive.Default(adaptive.WithTarget(time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			l, err := adaptive.New(strategy)
			require.NoError(t, err)
			limiter, before := &counted{Limiter: l}, l.Limit()
			conn := client(t, &service{unary: work}, grpcmw.ServerOptions(limiter, rpckey.Global())...)

			var attack, honest sync.WaitGroup
			for range 8 {
				attack.Go(func() {
					for i := range 15 {
						ctx, cancel := context.WithTimeout(t.Context(), 25*time.Millisecond)
						_, _ = conn.UnaryCall(ctx, &testpb.SimpleRequest{ResponseSize: int32(i % 3)})
						cancel()
					}
				})
			}
			var over atomic.Bool
			var served atomic.Int64
			for range 4 {
				honest.Go(func() {
					for !over.Load() {
						if _, err := conn.UnaryCall(t.Context(), &testpb.SimpleRequest{}); err != nil {
							t.Error("an honest call:", err)
							return
						}
						served.Add(1)
					}
				})
			}
			attack.Wait()
			over.Store(true)
			honest.Wait()
			require.NotZero(t, served.Load())
			require.Eventually(t, func() bool { return l.InFlight() == 0 }, 10*time.Second, time.Millisecond)
			require.Zero(t, limiter.failed.Load(), "calls that count as failures")
			require.GreaterOrEqual(t, l.Limit(), before)
		})
	}
}

// work takes 5 ms, and 100 ms of a call with a deadline. It notices the deadline
// in one of three ways.
func work(ctx context.Context, in *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if _, limited := ctx.Deadline(); !limited {
		time.Sleep(5 * time.Millisecond)
		return &testpb.SimpleResponse{}, nil
	}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
	}
	switch in.GetResponseSize() {
	case 0:
		return nil, ctx.Err()
	case 1:
		return nil, errors.New("the database did not answer in time")
	}
	return &testpb.SimpleResponse{}, nil // as much as there is
}

// A handler that works on after its client has left serves nobody.
func TestC2_AnswersToNobodyAreNoSuccesses(t *testing.T) {
	l := &slots{limit: 1}
	ctx, cancel := context.WithCancel(t.Context())
	i := grpcmw.UnaryServerInterceptor(l, rpckey.Global())
	_, err := i(ctx, nil, callInfo, func(context.Context, any) (any, error) {
		cancel()
		return nil, nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 1, l.outcomes[algo.Failed|algo.Untimed].Load())
}
