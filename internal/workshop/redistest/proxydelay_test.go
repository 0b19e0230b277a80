//go:build unix

package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// A pipeline waits for the way once, not for each of its replies.
func TestPipelinesTakeOneDelay(t *testing.T) {
	const delay, replies = 100 * time.Millisecond, 30
	p := redistest.StartProxy(t, redistest.Start(t))
	c := redis.NewClient(&redis.Options{Addr: p.Addr()})
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.Ping(context.Background()).Err())
	p.Set(redistest.Fault{Delay: delay})
	began := time.Now()
	_, err := c.Pipelined(context.Background(), func(pipe redis.Pipeliner) error {
		for range replies {
			pipe.Ping(context.Background())
		}
		return nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), delay)
	require.Less(t, time.Since(began), replies*delay/2)
}
