package grpcmw_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// told counts how often it is told that requests share connections.
type told struct {
	algo.Limiter
	times int
}

func (l *told) Multiplexed() { l.times++ }

// TestServersTellThatRequestsShareConnections: an adaptive limiter must know it.
func TestServersTellThatRequestsShareConnections(t *testing.T) {
	l, other := &told{Limiter: algo.Unlimited()}, &told{Limiter: algo.Unlimited()}
	for i, tell := range []func(){
		func() { grpcmw.ServerOptions(l, rpckey.Global()) },
		func() { grpcmw.UnaryServerInterceptor(l, rpckey.Global()) },
		func() { grpcmw.StreamServerInterceptor(l, rpckey.Global()) },
		func() {
			grpcmw.Limits([]grpcmw.Policy{{Name: "a", Limiter: other, Key: rpckey.Global()}, {Name: "b", Limiter: l, Key: rpckey.Global()}})
		},
	} {
		tell()
		require.Equal(t, i+1, l.times)
	}
	require.Positive(t, other.times)
}
