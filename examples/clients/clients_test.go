package clients

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
)

// provider allows 20 calls a second, with a burst of 4, 20 ms away.
type provider struct {
	limit algo.Limiter
	tell  func(http.Header, *algo.Decision) time.Duration // writes fields, and returns the wait that they ask for

	mu            sync.Mutex
	shut          []shut
	calls, denied int
	early         int // sent after an answer that said when to return, and before that
}

// shut is the time from an answer to the instant of which it said: return then.
type shut struct{ from, to time.Time }

func newProvider() *provider {
	return &provider{limit: algo.Must(algo.NewTokenBucket(algo.PerSecond(20), algo.Burst(4)))}
}

// answer decides about a call, and returns when the client has the answer.
func (p *provider) answer(h http.Header) (ok bool, wait time.Duration) {
	p.mu.Lock()
	p.calls++
	for _, s := range p.shut {
		if sent := time.Now(); sent.After(s.from) && sent.Before(s.to) {
			p.early++
			break
		}
	}
	p.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	lease, err := p.limit.Acquire(context.Background(), "", 1)
	if err != nil {
		panic(err)
	}
	wait = p.tell(h, &lease.Decision)
	time.Sleep(20 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !lease.Allowed {
		p.denied++
	}
	if wait > 0 {
		p.shut = append(p.shut, shut{time.Now(), time.Now().Add(wait)})
	}
	return lease.Allowed, wait
}

// RoundTrip is the provider over HTTP.
func (p *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r}
	body := `{"object": "list", "data": []}`
	if ok, _ := p.answer(resp.Header); !ok {
		resp.StatusCode = http.StatusTooManyRequests
		body = `{"error": {"type": "rate_limit_error", "message": "slow down"}}`
	}
	resp.Body = io.NopCloser(strings.NewReader(body))
	return resp, nil
}

// tells are the ways in which providers say when to return.
var tells = map[string]func(http.Header, *algo.Decision) time.Duration{
	"Retry-After": func(h http.Header, d *algo.Decision) time.Duration {
		if d.Allowed {
			return 0
		}
		h.Set("Retry-After", "2")
		return 2 * time.Second
	},
	"x-ratelimit": func(h http.Header, d *algo.Decision) (wait time.Duration) {
		h.Set("X-Ratelimit-Remaining-Requests", strconv.FormatInt(d.Remaining, 10))
		h.Set("X-Ratelimit-Reset-Requests", d.ResetAfter.String())
		if d.Remaining == 0 {
			return d.ResetAfter
		}
		return 0
	},
}

// use makes 40 callers call for half a minute, and returns how many calls they made.
func use(call Call) (calls int) {
	var mu sync.Mutex
	var callers sync.WaitGroup
	end := time.Now().Add(30 * time.Second)
	for range 40 {
		callers.Go(func() {
			for time.Now().Before(end) {
				_ = call(context.Background()) // a 429 is an error, or not: the caller's own
				mu.Lock()
				calls++
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	return calls
}

// check: no call was sent between an answer and the instant that it named, none was sent twice,
// and the limit was used.
func (p *provider) check(t *testing.T, calls int) {
	t.Logf("%d calls, %d denied", calls, p.denied)
	require.Zero(t, p.early, "denied twice for the same reason")
	require.Equal(t, calls, p.calls, "the client repeats by itself")
	require.Greater(t, calls-p.denied, 30*20/2)
	require.Less(t, p.denied, calls/20)
}

// TestDeniedOnce: no client gets a 429 twice for the same reason.
func TestDeniedOnce(t *testing.T) {
	for name, wire := range map[string]func(string, *http.Client) Call{
		"openai": OpenAI, "anthropic": Anthropic, "retryablehttp": RetryableHTTP, "resty": Resty,
	} {
		for how, tell := range tells {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newProvider()
					p.tell = tell
					partner := learn.New(algo.PerSecond(10))
					p.check(t, use(wire("http://partner/", Paced(p, partner))))
				})
			})
		}
	}
}

// TestDeniedOnceOverGRPC: the same, with RetryInfo.
func TestDeniedOnceOverGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider()
		p.tell = tells["Retry-After"]
		server := grpc.NewServer(grpc.UnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
			ok, wait := p.answer(http.Header{})
			if ok {
				return &grpc_health_v1.HealthCheckResponse{}, nil
			}
			st, err := status.New(codes.ResourceExhausted, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
			return nil, cmp.Or(err, st.Err())
		}))
		grpc_health_v1.RegisterHealthServer(server, grpc_health_v1.UnimplementedHealthServer{})
		listener := bufconn.Listen(1 << 16)
		go func() { _ = server.Serve(listener) }()
		call, conn, err := GRPC("passthrough:partner", learn.New(algo.PerSecond(10)),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
		require.NoError(t, err)
		p.check(t, use(call))
		require.NoError(t, conn.Close())
		server.Stop()
	})
}
