package distributed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// The share of an instance that closes goes to the others at once.
func TestInstancesThatLeaveAreNotCounted(t *testing.T) {
	cases.Slow(t)
	t.Parallel()
	server := redistest.Start(t)
	f := startFleet(t, 3, server.Addr(), algo.PerHour(10))
	f.settled(t)
	require.Equal(t, int64(3), server.Do("ZCARD", "sluice:{::instances}"))
	require.NoError(t, distributed.StoreOf(f.limiters[0]).Close())
	require.Equal(t, int64(2), server.Do("ZCARD", "sluice:{::instances}"))
	requireTTL(t, server)
}
