//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// replica is an instance and the connection of an Envoy to it.
type replica struct {
	*running
	conn *grpc.ClientConn
}

// TestNoBrokenAnswers: while the file changes, Redis is killed and comes back, and
// instances are replaced by new ones, every call is answered OK or OVER_LIMIT. The faults are
// counted by what they did, see the gateway's test. Seconds in an everyday run, ten minutes in
// a long one.
//
//	SLUICE_LONG=1 go test -count 1 -timeout 20m -v -run TestNoBrokenAnswers .
func TestNoBrokenAnswers(t *testing.T) {
	last := 6 * time.Second
	if cases.Long() {
		last = 10 * time.Minute
	}
	redis := redistest.Start(t)
	file := func(burst int) string {
		return fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ntimeouts: {unready: 500ms}\nstore: redis\nredis: {addresses: ['%s']}\ndomains:\n  - name: d\n    descriptors: [{key: a, limit: 200/s burst %d}]\n", redis.Addr(), burst)
	}
	begin := func() *replica {
		r := run(t, map[string]string{"rls.yaml": file(50)})
		conn, err := grpc.NewClient(r.front, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return &replica{r, conn}
	}
	end := time.Now().Add(last)
	var serving atomic.Pointer[replica]
	serving.Store(begin())
	var faults sync.WaitGroup
	var reloads, kills, outages, drains atomic.Int64
	retire := func(r *replica) {
		r.end()
		said := r.log.String()
		reloads.Add(int64(strings.Count(said, "configuration loaded") - 1)) // the first is the start
		outages.Add(int64(strings.Count(said, "code=telemetry.fallback")))
		if strings.Contains(said, "drain timed out") || strings.Contains(said, "level=ERROR") {
			t.Errorf("an instance did not end in order:\n%s", said)
		}
		_ = r.conn.Close()
		drains.Add(1)
	}
	every := func(d time.Duration, f func(n int)) {
		faults.Go(func() {
			for n := 1; time.Until(end) > d; n++ {
				time.Sleep(d)
				f(n)
			}
		})
	}
	var replacing sync.Mutex
	every(300*time.Millisecond, func(n int) {
		replacing.Lock()
		defer replacing.Unlock()
		serving.Load().write("rls.yaml", file(50+n%50))
	})
	every(1100*time.Millisecond, func(int) {
		redis.Kill()
		time.Sleep(400 * time.Millisecond)
		redis.Restart()
		kills.Add(1)
	})
	every(1700*time.Millisecond, func(int) {
		replacing.Lock()
		old := serving.Swap(begin())
		replacing.Unlock()
		retire(old)
	})

	var passed, denied, broken atomic.Int64
	var clients sync.WaitGroup
	request := &rls.RateLimitRequest{
		Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{{Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: "a", Value: "1"}}}},
	}
	for range 10 {
		clients.Go(func() {
			for time.Now().Before(end) {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				resp, err := rls.NewRateLimitServiceClient(serving.Load().conn).ShouldRateLimit(ctx, request)
				cancel()
				switch {
				case err == nil && resp.OverallCode == rls.RateLimitResponse_OK:
					passed.Add(1)
				case err == nil && resp.OverallCode == rls.RateLimitResponse_OVER_LIMIT:
					denied.Add(1)
				default:
					broken.Add(1)
					t.Error(err, resp)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	clients.Wait()
	faults.Wait()
	retire(serving.Load())
	t.Logf("%v: %d passed, %d denied, %d broken; %d reloads, Redis killed %d times (%d lines of decisions without it), %d drains",
		last, passed.Load(), denied.Load(), broken.Load(), reloads.Load(), kills.Load(), outages.Load(), drains.Load())
	for name, n := range map[string]*atomic.Int64{"reloads": &reloads, "kills": &kills, "decisions without Redis": &outages} {
		require.Positive(t, n.Load(), name)
	}
	require.GreaterOrEqual(t, drains.Load(), int64(2), "the last instance is one")
	require.Positive(t, passed.Load())
	require.Positive(t, denied.Load())
	require.Zero(t, broken.Load())
}
