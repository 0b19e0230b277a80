package distributed_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
	"github.com/sluice-go/sluice/internal/workshop/storetest"
)

// TestLostReplyConsumesOnce: a command is never sent twice.
func TestLostReplyConsumesOnce(t *testing.T) { storetest.LostReplies(t, open, true) }

// TestLateReplies: the charge of a late reply is given back.
func TestLateReplies(t *testing.T) { storetest.LateReplies(t, open) }

// TestErrorReplies: missing permission and full memory are different errors.
func TestErrorReplies(t *testing.T) { storetest.ErrorReplies(t, open) }

// TestScriptFlushUnderLoad: scripts that are lost are sent again.
func TestScriptFlushUnderLoad(t *testing.T) { storetest.LostScripts(t, open) }

// A server that refuses scripts with keys of several slots gets them one by
// one.
func TestServerThatRefusesSeveralSlots(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--cluster-enabled", "yes")
	server.Do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	require.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(server.Do("CLUSTER", "INFO")), "cluster_state:ok")
	}, 10*time.Second, 10*time.Millisecond)
	store := newStore(t, server.Client()) // not a cluster client
	l := must[*distributed.Limiter](t)(store.TokenBucket("hourly", algo.PerHour(10)))
	var admitted atomic.Int64
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			lease, err := l.Acquire(ctx, fmt.Sprint("user", i%10), 1)
			if err == nil && lease.Allowed && lease.Source == algo.SourceRemote {
				admitted.Add(1)
			}
		})
	}
	group.Wait()
	require.Equal(t, int64(100), admitted.Load())
}
