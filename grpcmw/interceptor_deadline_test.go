package grpcmw_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// A call whose deadline comes before it could end is not begun, and observers see
// why.
func TestDeadlineAtTheDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var event telemetry.Event
		i := grpcmw.UnaryServerInterceptor(algo.Must(adaptive.New(adaptive.Default())), rpckey.Global(),
			grpcmw.WithObserver(func(e telemetry.Event) { event = e }))
		call := func(patience time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := i(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a/b"}, func(context.Context, any) (any, error) {
				time.Sleep(100 * time.Millisecond)
				return nil, nil
			})
			return err
		}
		require.NoError(t, call(time.Second))
		require.Equal(t, codes.Unavailable, status.Code(call(50*time.Millisecond)))
		require.Equal(t, telemetry.Denied, event.Result)
		require.ErrorIs(t, event.Err, context.DeadlineExceeded)
		require.NoError(t, call(time.Second))
	})
}

// lateTimer is a context whose timer has not been served yet, as under load.
type lateTimer struct {
	context.Context
	deadline time.Time
}

func (c lateTimer) Deadline() (time.Time, bool) { return c.deadline, true }

// FailOpen is not for calls whose time runs out in a queue, before their timer fires.
func TestFailOpenIsNotForTheLateTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(adaptive.New(adaptive.Fixed(1), adaptive.WithQueue(adaptive.FIFO(10, time.Second))))
		hold, err := l.Acquire(t.Context(), "", 1)
		require.NoError(t, err)
		defer hold.Release(algo.Failed | algo.Untimed)
		i := grpcmw.UnaryServerInterceptor(l, rpckey.Global(), grpcmw.WithFailOpen())
		ctx := lateTimer{t.Context(), time.Now().Add(20 * time.Millisecond)}
		_, err = i(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a/b"}, func(context.Context, any) (any, error) {
			t.Error("the handler ran without a slot")
			return nil, nil
		})
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	})
}
