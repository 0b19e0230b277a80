package distributed_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// 512 callers in one process get as much as one would, batched or not.
func TestBatchesDecideAsSingleScripts(t *testing.T) {
	store, _ := onRedis(t)
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(100)))
	var admitted atomic.Int64
	var group sync.WaitGroup
	for i := range 512 {
		group.Go(func() {
			for range 4 {
				lease, err := l.Acquire(ctx, fmt.Sprint("user", i%3), 1)
				if err == nil && lease.Allowed && lease.Source == algo.SourceRemote {
					admitted.Add(1)
				}
			}
		})
	}
	group.Wait()
	require.Equal(t, int64(300), admitted.Load())
}
