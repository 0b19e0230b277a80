package main

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/live"
)

// With five times the calls that the service can decide, 99 % of the answers take less than
// 20 ms, and none is an error: at most 32 calls wait for the two processors, of 1 ms each.
func TestOverloadKeepsAnswersQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, err := live.NewOverload(config.Overload{MaxInFlight: 32})
		require.NoError(t, err)
		defer func() { require.NoError(t, limit.Close()) }()
		processors := make(chan struct{}, 2)
		decide := func(context.Context, any) (any, error) {
			processors <- struct{}{}
			time.Sleep(time.Millisecond)
			<-processors
			return &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}, nil
		}
		around := overLimit(limit, func(telemetry.Event) {})

		var mu sync.Mutex
		var took []time.Duration
		answers := map[rls.RateLimitResponse_Code]int{}
		var calls sync.WaitGroup
		for range 20_000 {
			time.Sleep(100 * time.Microsecond)
			calls.Go(func() {
				began := time.Now()
				resp, err := around(context.Background(), &rls.RateLimitRequest{}, &grpc.UnaryServerInfo{}, decide)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				took = append(took, time.Since(began))
				answers[resp.(*rls.RateLimitResponse).OverallCode]++
			})
		}
		calls.Wait()
		slices.Sort(took)
		p99 := took[len(took)*99/100]
		t.Logf("p99 %v; %v", p99, answers)
		require.Less(t, p99, 20*time.Millisecond)
		require.Positive(t, answers[rls.RateLimitResponse_OK])
		require.Positive(t, answers[rls.RateLimitResponse_OVER_LIMIT])
	})
}
