package grpcmw_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// multiplexed is a limiter that asks whether requests share connections.
type multiplexed struct {
	script
	told int
}

func (m *multiplexed) Multiplexed() { m.told++ }

// A limiter is told that calls share connections behind any wrapper, too.
func TestMultiplexedBehindWrappers(t *testing.T) {
	for _, wrap := range []func(algo.Limiter) algo.Limiter{
		func(l algo.Limiter) algo.Limiter { return l }, algo.Shadow,
		func(l algo.Limiter) algo.Limiter { return algo.All(algo.NewSwitch(l), algo.Unlimited()) },
	} {
		l := new(multiplexed)
		grpcmw.ServerOptions(wrap(l), rpckey.Global())
		require.Equal(t, 1, l.told)
	}
}
