package grpcmw_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// An open stream waits for its client, so it takes no slot of an adaptive limit
// from unary calls.
func TestStreamsWaitForTheirClients(t *testing.T) {
	l := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithLimits(1, 1)))
	i := grpcmw.StreamServerInterceptor(l, rpckey.Global())
	err := run(t.Context(), i, func(grpc.ServerStream) error {
		e := l.Explain()
		require.Equal(t, 1, e.InFlight)
		require.Equal(t, 1, e.AtClient)
		lease, err := l.Acquire(t.Context(), "", 1)
		require.NoError(t, err)
		require.True(t, lease.Allowed)
		lease.Release(algo.Succeeded)
		return nil
	})
	require.NoError(t, err)
	require.Zero(t, l.Explain().AtClient)
	require.Zero(t, l.InFlight())
}

// TestC1_AStreamReleasedByItsHandler: a handler that releases the lease of its stream frees its
// slot once, and leaves the limit as it was.
func TestC1_AStreamReleasedByItsHandler(t *testing.T) {
	l := algo.Must(adaptive.New(strategy.AIMD(adaptive.WithLimits(1, 2), strategy.WithInitial(2))))
	i := grpcmw.StreamServerInterceptor(l, rpckey.Global(), grpcmw.WithLeaseInContext())
	for range 3 {
		err := run(t.Context(), i, func(ss grpc.ServerStream) error {
			require.Equal(t, 1, l.Explain().AtClient)
			algo.LeaseFrom(ss.Context()).Release(algo.Succeeded)
			require.Zero(t, l.InFlight())
			return nil
		})
		require.NoError(t, err)
	}
	for i := range 3 {
		lease, err := l.Acquire(t.Context(), "", 1)
		require.NoError(t, err)
		require.Equal(t, i < 2, lease.Allowed)
	}
}
