package admission_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// limits are limiters in a state, for the key "k".
var limits = []struct {
	name string
	make func() algo.Limiter
}{
	{"room", func() algo.Limiter { return algo.Must(algo.NewTokenBucket(algo.PerHour(9))) }},
	{"spent", empty},
	{"window, spent", func() algo.Limiter {
		return used(algo.Must(algo.NewFixedWindow(algo.PerMinute(3))), 3)
	}},
	{"log, spent", func() algo.Limiter { return used(algo.Must(algo.NewSlidingLog(algo.PerMinute(2))), 2) }},
	{"delays", func() algo.Limiter {
		return used(algo.Must(algo.NewTokenBucket(algo.PerSecond(1), algo.Burst(1), algo.MaxWait(time.Minute))), 3)
	}},
	{"full keys", func() algo.Limiter { return full(algo.NewFixedWindow) }},
	{"full keys that some spent", func() algo.Limiter { return algo.All(full(algo.NewFixedWindow), empty()) }},
	{"per key, room", func() algo.Limiter { return algo.Must(adaptive.PerKey(4)) }},
	{"per key, full", func() algo.Limiter { return used(algo.Must(adaptive.PerKey(2)), 2) }},
	{"in flight, room", func() algo.Limiter { return algo.Must(adaptive.New(adaptive.Fixed(4))) }},
	{"in flight, full", func() algo.Limiter { return used(algo.Must(adaptive.New(adaptive.Fixed(1))), 1) }},
	{"banned", func() algo.Limiter {
		b := algo.Must(guard.NewBan(empty(), algo.PerHour(1), time.Minute, time.Hour))
		return used(b, 1)
	}},
	{"banned for ever", algo.DenyAll},
	{"never", func() algo.Limiter { return prepaid.NewCredits() }},
	{"failures only, spent", func() algo.Limiter { return guard.FailuresOnly(empty()) }},
	{"off", func() algo.Limiter { s := algo.NewSwitch(empty()); s.Off(); return s }},
	{"trial of a spent one", func() algo.Limiter { return algo.Shadow(empty()) }},
	{"trial of a ban", func() algo.Limiter { return algo.Shadow(algo.DenyAll()) }},
	{"trial of one that fails", func() algo.Limiter { return algo.Shadow(fails(errDown)()) }},
	{"fails", fails(errDown)},
}

// empty is a bucket that "k" has spent.
func empty() algo.Limiter { return used(algo.Must(algo.NewTokenBucket(algo.PerHour(1))), 1) }

// full has no room for the key "k".
func full(new func(algo.Rate, ...algo.Option) (*algo.RateLimiter, error)) algo.Limiter {
	l := algo.Must(new(algo.PerMinute(3), algo.MaxKeys(1), algo.DenyNew()))
	for i := range 1000 {
		l.Allow(fmt.Sprint("another", i), 3)
	}
	return l
}

// used takes n units of "k".
func used(l algo.Limiter, n int64) algo.Limiter {
	for range n {
		if _, err := l.Acquire(context.Background(), "k", 1); err != nil {
			panic(err)
		}
	}
	return l
}

// outcome is what two limits and a protocol made of a request.
type verdict struct {
	class   string
	retry   time.Duration
	charged [2]int64
}

// TestPairs: whatever two limits say about a request, neither their order nor the protocol
// changes the answer or what stays charged; nor do limits that are not in force beside them.
func TestPairs(t *testing.T) {
	for _, several := range []bool{false, true} {
		for i, a := range limits {
			for _, b := range limits[i:] {
				t.Run(fmt.Sprintf("%s, %s, several=%t", a.name, b.name, several), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						want := pair{a.make(), b.make(), several, false}.overHTTP(t)
						require.Equal(t, want, pair{a.make(), b.make(), several, false}.overRPC(t), "over gRPC")
						for _, back := range []verdict{
							pair{b.make(), a.make(), several, false}.overHTTP(t), pair{b.make(), a.make(), several, false}.overRPC(t),
						} {
							back.charged[0], back.charged[1] = back.charged[1], back.charged[0]
							require.Equal(t, want, back, "in the other order")
						}
						require.Equal(t, want, pair{a.make(), b.make(), several, true}.overHTTP(t), "beside limits on trial")
						require.Equal(t, want, pair{a.make(), b.make(), several, true}.overRPC(t), "beside limits on trial, over gRPC")
					})
				})
			}
		}
	}
}

// pair is two limits in one decision: as policies of their own, or as one. beside: between limits on trial.
type pair struct {
	a, b            algo.Limiter
	several, beside bool
}

func (p pair) limiters() []algo.Limiter {
	if !p.beside {
		return []algo.Limiter{p.a, p.b}
	}
	all := []algo.Limiter{algo.Unlimited(), p.a, p.b}
	for i, l := range limits { // each on trial
		all = slices.Insert(all, 1+i%3, algo.Shadow(l.make()))
	}
	return all
}

func (p pair) overHTTP(t *testing.T) (v verdict) {
	var d *algo.Decision
	opts := []httpmw.Option{httpmw.WithDenied(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		denial, _ := httpmw.DenialFrom(r.Context())
		d = &denial.Decision
		w.WriteHeader(denial.Status)
	}))}
	key := func(*http.Request) (string, error) { return "k", nil }
	limit := httpmw.Limit(algo.All(p.limiters()...), key, opts...)
	if p.several {
		var ps []httpmw.Policy
		for i, l := range p.limiters() {
			ps = append(ps, httpmw.Policy{Name: fmt.Sprint("p", i), Limiter: l, Key: key})
		}
		limit = httpmw.Limits(ps, opts...)
	}
	before := p.left(t)
	w := httptest.NewRecorder()
	limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {})).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	v.class = map[int]string{200: "admitted", 429: "caller", 503: "server"}[w.Code]
	return p.after(t, v, d, before)
}

func (p pair) overRPC(t *testing.T) (v verdict) {
	var d *algo.Decision
	opts := []grpcmw.Option{grpcmw.WithDenied(func(_ context.Context, st *status.Status, denial algo.Decision) *status.Status {
		d = &denial
		return st
	})}
	key := func(context.Context, string) (string, error) { return "k", nil }
	before := p.left(t)
	err := p.unary(key, opts)
	v.class = map[codes.Code]string{codes.OK: "admitted", codes.ResourceExhausted: "caller", codes.Unavailable: "server"}[status.Code(err)]
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			require.Equal(t, strings.Contains(info.Reason, "BANNED"), d.Reason == algo.Banned, "%v", d)
		}
	}
	return p.after(t, v, d, before)
}

// unary makes a call without a network.
func (p pair) unary(key keyfunc.RPC, opts []grpcmw.Option) error {
	limit := grpcmw.UnaryServerInterceptor(algo.All(p.limiters()...), key, opts...)
	if p.several {
		plans := map[string][]grpcmw.Policy{}
		for i, l := range p.limiters() {
			plans[""] = append(plans[""], grpcmw.Policy{Name: fmt.Sprint("p", i), Limiter: l, Key: key})
		}
		return throughServer(grpcmw.NewPlans(key, plans, opts...).ServerOptions())
	}
	_, err := limit(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "/s/m"}, func(context.Context, any) (any, error) { return nil, nil })
	return err
}

// after completes v. Both limits tell what stays charged.
func (p pair) after(t *testing.T, v verdict, d *algo.Decision, before [2]int64) verdict {
	if d != nil {
		v.retry = d.RetryAfter
		v.class += " " + d.Reason.String()
	}
	for i, left := range p.left(t) {
		v.charged[i] = before[i] - left
	}
	return v
}

func (p pair) left(t *testing.T) (n [2]int64) {
	for i, l := range []algo.Limiter{p.a, p.b} {
		if lease, err := l.Acquire(t.Context(), "k", 0); err == nil {
			n[i] = lease.Remaining
		}
	}
	return n
}

// throughServer makes a call over a connection in memory.
func throughServer(opts []grpc.ServerOption) error {
	listener := bufconn.Listen(1 << 16)
	srv := grpc.NewServer(opts...)
	testpb.RegisterTestServiceServer(srv, &service{served: func() {}})
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(listener) }()
	defer func() { srv.Stop(); <-done }()
	conn, err := grpc.NewClient("passthrough:///", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = testpb.NewTestServiceClient(conn).EmptyCall(context.Background(), &testpb.Empty{})
	return err
}
