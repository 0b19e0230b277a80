package admission_test

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/internal/cause"
	"github.com/sluice-go/sluice/keyfunc"
)

// A decision is sent through both adapters.
type sent struct {
	name  string
	l     func() algo.Limiter // the limiter, a new one for each adapter
	ctx   ending              // of the request's context
	key   string              // default "alice"; see keys
	cost  int64               // 0: no cost function; free for 0 units
	open  bool                // fail open
	none  string              // the treatment of a missing key
	skip  bool                // exempt
	quiet bool                // no event is expected
	want  answer
}

// answer is how a request ended, in terms of both protocols.
type answer struct {
	result  telemetry.Result
	status  string        // ok, quota, capacity, or over: the request's context has ended
	retry   time.Duration // the shortest wait in the answer; 0: none
	event   algo.Decision // as an observer sees it; compared if reason, limit or delay matter
	cost    int64         // as an observer sees it
	err     error         // as an observer sees it
	keyed   bool          // the event has a key
	charged int64         // units that stay charged
	served  bool          // the handler ran
}

// ofRequest is the context key of a value that only the request's context has.
type ofRequest struct{}

type ending uint8

const (
	open ending = iota
	canceled
	expired
	cancelSoon  // after 20 ms
	expireLater // after 1 s
)

func (e ending) of(ctx context.Context) (context.Context, context.CancelFunc) {
	switch e {
	case canceled:
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	case expired:
		return context.WithDeadline(ctx, time.Unix(0, 0))
	case cancelSoon:
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(20*time.Millisecond, cancel)
		return ctx, cancel
	case expireLater:
		return context.WithTimeout(ctx, time.Second)
	}
	return ctx, func() {}
}

// ledger counts the units that stay charged to its limiter.
type ledger struct {
	algo.Limiter
	mu      sync.Mutex
	charged int64
}

func (l *ledger) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	inner, err := l.Limiter.Acquire(ctx, key, n)
	if err != nil || !inner.Allowed {
		return inner, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.charged += n
	return algo.NewLease(inner.Decision, &entry{l, inner}, algo.Handle{Key: key, N: n}), nil
}

func (l *ledger) About() algo.Description { return algo.About(l.Limiter) }

type entry struct {
	l     *ledger
	inner algo.Lease
}

func (e *entry) Release(h algo.Handle, o algo.Outcome) {
	e.inner.Release(o)
	e.l.mu.Lock()
	defer e.l.mu.Unlock()
	if o == algo.Canceled {
		e.l.charged -= h.N
	}
}

func (e *entry) Settle(algo.Handle, int64) {}

// says answers each request with d and err.
type says struct {
	d    algo.Decision
	err  error
	desc algo.Description
}

func (s says) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	if s.err != nil {
		return algo.Lease{}, s.err
	}
	return algo.NewLease(s.d, nowhere{}, algo.Handle{Key: key, N: n}), nil
}

func (s says) About() algo.Description { return s.desc }

type nowhere struct{}

func (nowhere) Release(algo.Handle, algo.Outcome) {}
func (nowhere) Settle(algo.Handle, int64)         {}

func decides(d algo.Decision) func() algo.Limiter {
	return func() algo.Limiter { return says{d: d, desc: algo.Description{Quota: 10, Window: time.Second}} }
}

func silent(d algo.Decision) func() algo.Limiter {
	return func() algo.Limiter { return says{d: d} }
}

func inFlight(d algo.Decision) func() algo.Limiter {
	return func() algo.Limiter {
		return says{d: d, desc: algo.Description{Quota: 10, Unit: algo.ConcurrentRequests}}
	}
}

func fails(err error) func() algo.Limiter { return func() algo.Limiter { return says{err: err} } }

func spent() algo.Limiter {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
	l.Allow("alice", 10)
	return l
}

var errDown = errors.New("down")

func admits(d time.Duration) algo.Decision {
	return algo.Decision{Allowed: true, Limit: 10, Remaining: 4, Delay: d, NextAfter: d, ResetAfter: d}
}

func denies(r algo.Reason, after time.Duration) algo.Decision {
	return algo.Decision{Reason: r, Limit: 10, RetryAfter: after, NextAfter: after, ResetAfter: after}
}

// keys are the key functions, by name.
func keyOf(name string) (string, error) {
	switch name {
	case "missing":
		return "", keyfunc.ErrNoKey
	case "broken":
		return "", errDown
	case "global":
		return "", nil
	case "empty":
		return "", nil
	case "":
		return "alice", nil
	}
	return name, nil
}

// The same request gets the same answer over both protocols: the same class,
// the corresponding status, the same wait; observers see the same event, and
// the same number of units stays charged.
func TestAdaptersAgree(t *testing.T) {
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h, g := overHTTP(t, row), overGRPC(t, row)
			compare(t, "http", row, h)
			compare(t, "grpc", row, g)
			if !row.quiet {
				require.Equal(t, normal(h.event), normal(g.event))
			}
		})
	}
}

// normal is the part of an event that does not depend on the protocol or the clock.
func normal(e telemetry.Event) telemetry.Event {
	return telemetry.Event{
		Result: e.Result, Policy: e.Policy, Decision: rounded(e.Decision), Cost: e.Cost, KeyHash: e.KeyHash, Err: e.Err,
	}
}

// rounded takes out the time that the test takes.
func rounded(d algo.Decision) algo.Decision {
	for _, after := range []*time.Duration{&d.RetryAfter, &d.NextAfter, &d.ResetAfter} {
		if *after > time.Minute && *after != algo.Forever {
			*after = after.Round(time.Second)
		}
	}
	return d
}

// seen is the outcome of a request.
type seen struct {
	status  string
	retry   time.Duration
	events  int
	event   telemetry.Event
	charged int64
	served  bool
}

func compare(t *testing.T, via string, row sent, got seen) {
	t.Helper()
	want := row.want
	require.Equal(t, want.status, got.status, via)
	require.Equal(t, want.charged, got.charged, "%s: charged", via)
	require.Equal(t, want.served, got.served, "%s: handler", via)
	most := want.retry + min(want.retry/5, 5*time.Second)
	require.True(t, want.retry <= got.retry && got.retry <= most+time.Second-1 && (got.retry == 0) == (want.retry == 0),
		"%s: retry after %v, want %v to %v", via, got.retry, want.retry, most)
	if row.quiet {
		require.Zero(t, got.events, via)
		return
	}
	require.Equal(t, 1, got.events, via)
	require.NotNil(t, got.event.Context, via)
	require.Equal(t, "request", got.event.Context.Value(ofRequest{}), via)
	e := got.event
	require.Equal(t, want.result.String(), e.Result.String(), via)
	require.Equal(t, want.cost, e.Cost, "%s: cost", via)
	require.Equal(t, want.keyed, e.KeyHash != 0, "%s: key", via)
	require.Equal(t, want.event, rounded(e.Decision), "%s: decision", via)
	if want.err == nil {
		require.NoError(t, e.Err, via)
	} else {
		require.ErrorIs(t, e.Err, want.err, via)
	}
	require.False(t, e.At.IsZero(), via)
	if want.served {
		require.GreaterOrEqual(t, e.Waited, want.event.Delay, via)
	}
	require.Equal(t, want.retry > 0, e.Sent.RetryAfter > 0, via)
}

func overHTTP(t *testing.T, row sent) (got seen) {
	l := &ledger{Limiter: row.l()}
	var mu sync.Mutex
	opts := []httpmw.Option{
		httpmw.WithName("p"),
		httpmw.WithObserver(func(e telemetry.Event) {
			mu.Lock()
			defer mu.Unlock()
			got.event = e
			got.events++
		}),
	}
	if row.cost != 0 {
		opts = append(opts, httpmw.WithCost(func(*http.Request) int64 { return units(row.cost) }))
	}
	if row.open {
		opts = append(opts, httpmw.WithFailOpen())
	}
	if row.skip {
		opts = append(opts, httpmw.WithSkip(func(*http.Request) bool { return true }))
	}
	switch row.none {
	case "shared":
		opts = append(opts, httpmw.WithMissingKey(httpmw.Shared))
	case "deny":
		opts = append(opts, httpmw.WithMissingKey(http.StatusUnauthorized))
	case "skip":
		opts = append(opts, httpmw.WithMissingKey(httpmw.Skip))
	}
	h := httpmw.Limit(l, func(*http.Request) (string, error) { return keyOf(row.key) }, opts...)(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.served = true }))
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		ctx, cancel := row.ctx.of(context.WithValue(r.Context(), ofRequest{}, "request"))
		defer cancel()
		h.ServeHTTP(w, r.WithContext(ctx))
	}))
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	require.NoError(t, err)
	resp.Body.Close()
	<-done
	got.status = map[int]string{200: "ok", 401: "keyless", 429: "quota", 503: "capacity"}[resp.StatusCode]
	if got.status == "capacity" && resp.ContentLength == 0 {
		got.status = "over"
	}
	s, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	got.retry = time.Duration(s) * time.Second
	got.charged = l.charged
	require.Equal(t, got.retry, got.event.Sent.RetryAfter)
	return got
}

type service struct {
	testpb.UnimplementedTestServiceServer
	served func()
}

func (s *service) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	s.served()
	return &testpb.Empty{}, nil
}

func overGRPC(t *testing.T, row sent) (got seen) {
	l := &ledger{Limiter: row.l()}
	opts := []grpcmw.Option{
		grpcmw.WithName("p"),
		grpcmw.WithObserver(func(e telemetry.Event) {
			got.event = e
			got.events++
		}),
	}
	if row.cost != 0 {
		opts = append(opts, grpcmw.WithCost(func(context.Context, string, any) int64 { return units(row.cost) }))
	}
	if row.open {
		opts = append(opts, grpcmw.WithFailOpen())
	}
	if row.skip {
		opts = append(opts, grpcmw.WithExempt("/grpc.testing.TestService/*"))
	}
	switch row.none {
	case "shared":
		opts = append(opts, grpcmw.WithMissingKey(grpcmw.Shared))
	case "deny":
		opts = append(opts, grpcmw.WithMissingKey(codes.Unauthenticated))
	case "skip":
		opts = append(opts, grpcmw.WithMissingKey(grpcmw.Skip))
	}
	answered := make(chan error, 1)
	around := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		ctx, cancel := row.ctx.of(context.WithValue(ctx, ofRequest{}, "request"))
		defer cancel()
		resp, err := h(ctx, req)
		answered <- err
		return resp, err
	}
	lis := bufconn.Listen(1 << 16)
	srv := grpc.NewServer(append([]grpc.ServerOption{grpc.WaitForHandlers(true), grpc.ChainUnaryInterceptor(around)}, grpcmw.ServerOptions(
		l, func(context.Context, string) (string, error) { return keyOf(row.key) }, opts...)...)...)
	testpb.RegisterTestServiceServer(srv, &service{served: func() { got.served = true }})
	go func() { _ = srv.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	require.NoError(t, err)
	defer conn.Close()
	_, _ = testpb.NewTestServiceClient(conn).EmptyCall(t.Context(), &testpb.Empty{})
	err = <-answered
	srv.Stop()
	st := status.Convert(err)
	got.status = map[codes.Code]string{
		codes.OK: "ok", codes.Unauthenticated: "keyless", codes.ResourceExhausted: "quota", codes.Unavailable: "capacity", codes.Canceled: "over", codes.DeadlineExceeded: "over",
	}[st.Code()]
	for _, detail := range st.Details() {
		if r, ok := detail.(*errdetails.RetryInfo); ok {
			got.retry = r.RetryDelay.AsDuration()
		}
	}
	got.charged = l.charged
	require.Equal(t, got.retry, got.event.Sent.RetryAfter)
	return got
}

const free = math.MaxInt64 // the cost 0, where 0 is no cost function

func units(cost int64) int64 {
	if cost == free {
		return 0
	}
	return cost
}

var noKey = algo.Decision{Reason: algo.Never, RetryAfter: algo.Forever}

// turned is a decision whose Delay could not be waited for.
func turned(d time.Duration) algo.Decision {
	return algo.Decision{Reason: algo.Quota, Cause: cause.Deadline, Limit: 10, Remaining: 4, Delay: d, RetryAfter: d, NextAfter: d, ResetAfter: d}
}

var table = []sent{
	// Admitted.
	{name: "admitted", l: decides(admits(0)),
		want: answer{status: "ok", event: admits(0), cost: 1, keyed: true, charged: 1, served: true}},
	{name: "admitted, 5 units", l: decides(admits(0)), cost: 5,
		want: answer{status: "ok", event: admits(0), cost: 5, keyed: true, charged: 5, served: true}},
	{name: "admitted, no units", l: decides(admits(0)), cost: free,
		want: answer{status: "ok", event: admits(0), keyed: true, served: true}},
	{name: "admitted, empty key", l: decides(admits(0)), key: "empty",
		want: answer{status: "ok", event: admits(0), cost: 1, charged: 1, served: true}},
	{name: "admitted by a limiter without a description", l: silent(algo.Decision{Allowed: true}),
		want: answer{status: "ok", event: algo.Decision{Allowed: true}, cost: 1, keyed: true, charged: 1, served: true}},
	{name: "admitted although the client left", l: decides(admits(0)), ctx: canceled,
		want: answer{status: "ok", event: admits(0), cost: 1, keyed: true, charged: 1, served: true}},
	{name: "unlimited", l: algo.Unlimited, key: "unlimited",
		want: answer{status: "ok", event: unlimited(), cost: 1, keyed: true, charged: 1, served: true}},

	// Delayed.
	{name: "delayed", l: decides(admits(40 * time.Millisecond)),
		want: answer{status: "ok", event: algo.Decision{Allowed: true, Limit: 10, Remaining: 4, Delay: 40 * time.Millisecond},
			cost: 1, keyed: true, charged: 1, served: true}},
	{name: "delayed beyond the deadline", l: decides(admits(9 * time.Second)), ctx: expireLater,
		want: answer{result: telemetry.Denied, status: "quota", retry: 9 * time.Second, event: turned(9 * time.Second), cost: 1, keyed: true}},
	{name: "delayed after the deadline", l: decides(admits(9 * time.Second)), ctx: expired,
		want: answer{result: telemetry.Denied, status: "quota", retry: 9 * time.Second, event: turned(9 * time.Second), cost: 1, keyed: true}},
	{name: "delayed, canceled meanwhile", l: decides(admits(9 * time.Second)), ctx: cancelSoon,
		want: answer{result: telemetry.Canceled, status: "over", event: turned(9 * time.Second), cost: 1, keyed: true, err: context.Canceled}},
	{name: "delayed, canceled before", l: decides(admits(9 * time.Second)), ctx: canceled,
		want: answer{result: telemetry.Canceled, status: "over", event: turned(9 * time.Second), cost: 1, keyed: true, err: context.Canceled}},

	// Denied.
	{name: "denied, quota", l: decides(denies(algo.Quota, 3*time.Second)),
		want: answer{result: telemetry.Denied, status: "quota", retry: 3 * time.Second, event: denies(algo.Quota, 3*time.Second), cost: 1, keyed: true}},
	{name: "denied, quota, an hour", l: decides(denies(algo.Quota, time.Hour)),
		want: answer{result: telemetry.Denied, status: "quota", retry: time.Hour, event: denies(algo.Quota, time.Hour), cost: 1, keyed: true}},
	{name: "denied, quota, no time given", l: decides(denies(algo.Quota, 0)),
		want: answer{result: telemetry.Denied, status: "quota", retry: time.Second, event: denies(algo.Quota, 0), cost: 1, keyed: true}},
	{name: "denied, quota, forever", l: decides(denies(algo.Quota, algo.Forever)),
		want: answer{result: telemetry.Denied, status: "quota", event: denies(algo.Quota, algo.Forever), cost: 1, keyed: true}},
	{name: "denied, never", l: decides(denies(algo.Never, algo.Forever)),
		want: answer{result: telemetry.Denied, status: "quota", event: denies(algo.Never, algo.Forever), cost: 1, keyed: true}},
	{name: "denied, never, global", l: decides(denies(algo.Never, algo.Forever)), key: "global",
		want: answer{result: telemetry.Denied, status: "quota", event: denies(algo.Never, algo.Forever), cost: 1}},
	{name: "denied, overload", l: decides(denies(algo.Overload, 2*time.Second)),
		want: answer{result: telemetry.Denied, status: "capacity", retry: 2 * time.Second, event: denies(algo.Overload, 2*time.Second), cost: 1, keyed: true}},
	{name: "denied, overload, no time given", l: silent(denies(algo.Overload, 0)),
		want: answer{result: telemetry.Denied, status: "capacity", retry: time.Second, event: denies(algo.Overload, 0), cost: 1, keyed: true}},
	{name: "denied, in flight, one client", l: inFlight(denies(algo.Quota, 0)),
		want: answer{result: telemetry.Denied, status: "quota", retry: time.Second, event: denies(algo.Quota, 0), cost: 1, keyed: true}},
	{name: "denied, in flight, the server", l: inFlight(denies(algo.Overload, 0)), key: "global",
		want: answer{result: telemetry.Denied, status: "capacity", retry: time.Second, event: denies(algo.Overload, 0), cost: 1}},
	{name: "denied, in flight, empty key", l: inFlight(denies(algo.Overload, 0)), key: "empty",
		want: answer{result: telemetry.Denied, status: "capacity", retry: time.Second, event: denies(algo.Overload, 0), cost: 1}},
	{name: "denied, the deadline before the quota", l: decides(denies(algo.Quota, 3*time.Second)), ctx: expireLater,
		want: answer{result: telemetry.Denied, status: "quota", retry: 3 * time.Second, event: denies(algo.Quota, 3*time.Second), cost: 1, keyed: true}},
	{name: "denied after the deadline", l: decides(denies(algo.Quota, 3*time.Second)), ctx: expired,
		want: answer{result: telemetry.Denied, status: "quota", retry: 3 * time.Second, event: denies(algo.Quota, 3*time.Second), cost: 1, keyed: true}},
	{name: "denied, canceled", l: decides(denies(algo.Quota, 3*time.Second)), ctx: canceled,
		want: answer{result: telemetry.Canceled, status: "over", event: denies(algo.Quota, 3*time.Second), cost: 1, keyed: true, err: context.Canceled}},
	{name: "denied by a bucket", l: spent, cost: 10,
		want: answer{result: telemetry.Denied, status: "quota", retry: time.Hour, event: algo.Decision{Reason: algo.Quota, Limit: 10, RetryAfter: time.Hour, NextAfter: 6 * time.Minute, ResetAfter: time.Hour}, cost: 10, keyed: true}},
	{name: "more than a bucket holds", l: spent, cost: 11,
		want: answer{result: telemetry.Denied, status: "quota", event: algo.Decision{Reason: algo.Never, Limit: 10, RetryAfter: algo.Forever, NextAfter: 6 * time.Minute, ResetAfter: time.Hour}, cost: 11, keyed: true}},

	// Undecided.
	{name: "error", l: fails(errDown),
		want: answer{result: telemetry.FailedClosed, status: "capacity", retry: time.Second, cost: 1, keyed: true, err: errDown}},
	{name: "error, open", l: fails(errDown), open: true,
		want: answer{result: telemetry.FailedOpen, status: "ok", cost: 1, keyed: true, err: errDown, served: true}},
	{name: "error after the deadline", l: fails(errDown), ctx: expired,
		want: answer{result: telemetry.Canceled, status: "over", cost: 1, keyed: true, err: context.DeadlineExceeded}},
	{name: "error after the deadline, open", l: fails(errDown), ctx: expired, open: true,
		want: answer{result: telemetry.Canceled, status: "over", cost: 1, keyed: true, err: context.DeadlineExceeded}},
	{name: "error, canceled", l: fails(errDown), ctx: canceled,
		want: answer{result: telemetry.Canceled, status: "over", cost: 1, keyed: true, err: context.Canceled}},
	{name: "error, canceled, open", l: fails(errDown), ctx: canceled, open: true,
		want: answer{result: telemetry.Canceled, status: "over", cost: 1, keyed: true, err: context.Canceled}},
	{name: "the limiter's own deadline", l: fails(context.DeadlineExceeded),
		want: answer{result: telemetry.FailedClosed, status: "capacity", retry: time.Second, cost: 1, keyed: true, err: context.DeadlineExceeded}},
	{name: "the limiter's own deadline, open", l: fails(context.DeadlineExceeded), open: true,
		want: answer{result: telemetry.FailedOpen, status: "ok", cost: 1, keyed: true, err: context.DeadlineExceeded, served: true}},
	{name: "wait beyond the deadline", l: fails(algo.ErrWait),
		want: answer{result: telemetry.FailedClosed, status: "capacity", retry: time.Second, cost: 1, keyed: true, err: algo.ErrWait}},
	{name: "wait beyond the deadline, open", l: fails(algo.ErrWait), open: true,
		want: answer{result: telemetry.FailedClosed, status: "capacity", retry: time.Second, cost: 1, keyed: true, err: algo.ErrWait}},
	{name: "bad cost", l: fails(algo.ErrCost),
		want: answer{result: telemetry.FailedClosed, status: "capacity", cost: 1, keyed: true, err: algo.ErrCost}},
	{name: "bad cost, open", l: fails(algo.ErrCost), open: true,
		want: answer{result: telemetry.FailedClosed, status: "capacity", cost: 1, keyed: true, err: algo.ErrCost}},
	{name: "bad cost, canceled", l: fails(algo.ErrCost), ctx: canceled,
		want: answer{result: telemetry.Canceled, status: "over", cost: 1, keyed: true, err: context.Canceled}},
	{name: "bad cost after the deadline", l: fails(algo.ErrCost), ctx: expired,
		want: answer{result: telemetry.Canceled, status: "over", cost: 1, keyed: true, err: context.DeadlineExceeded}},
	{name: "negative cost", l: decides(admits(0)), cost: -7,
		want: answer{result: telemetry.FailedClosed, status: "capacity", cost: -7, keyed: true, err: algo.ErrCost}},
	{name: "negative cost, open", l: decides(admits(0)), cost: -7, open: true,
		want: answer{result: telemetry.FailedClosed, status: "capacity", cost: -7, keyed: true, err: algo.ErrCost}},
	{name: "broken key", l: decides(admits(0)), key: "broken", cost: 5,
		want: answer{result: telemetry.FailedClosed, status: "capacity", retry: time.Second, err: errDown}},
	{name: "broken key, open", l: decides(admits(0)), key: "broken", open: true,
		want: answer{result: telemetry.FailedOpen, status: "ok", err: errDown, served: true}},
	{name: "broken key, canceled", l: decides(admits(0)), key: "broken", ctx: canceled,
		want: answer{result: telemetry.Canceled, status: "over", err: context.Canceled}},

	// Without a key.
	{name: "no key", l: decides(admits(0)), key: "missing",
		want: answer{status: "ok", event: admits(0), cost: 1, keyed: true, charged: 1, served: true}},
	{name: "no key, shared", l: decides(admits(0)), key: "missing", none: "shared", cost: 3,
		want: answer{status: "ok", event: admits(0), cost: 3, keyed: true, charged: 3, served: true}},
	{name: "no key, shared, denied", l: decides(denies(algo.Overload, 0)), key: "missing", none: "shared",
		want: answer{result: telemetry.Denied, status: "capacity", retry: time.Second, event: denies(algo.Overload, 0), cost: 1, keyed: true}},
	{name: "no key, deny", l: decides(admits(0)), key: "missing", none: "deny",
		want: answer{result: telemetry.Denied, status: "keyless", event: noKey, keyed: true, err: keyfunc.ErrNoKey}},
	{name: "no key, deny, canceled", l: decides(admits(0)), key: "missing", none: "deny", ctx: canceled,
		want: answer{result: telemetry.Canceled, status: "over", event: noKey, keyed: true, err: context.Canceled}},
	{name: "no key, skip", l: decides(denies(algo.Quota, 1)), key: "missing", none: "skip", quiet: true,
		want: answer{status: "ok", served: true}},

	// Around a limiter.
	{name: "on trial, would be denied", l: func() algo.Limiter { return algo.Shadow(decides(denies(algo.Quota, 3*time.Second))()) },
		want: answer{status: "ok", event: onTrial(denies(algo.Quota, 3*time.Second)), cost: 1, keyed: true, charged: 1, served: true}},
	{name: "on trial, fails", l: func() algo.Limiter { return algo.Shadow(fails(errDown)()) },
		want: answer{status: "ok", event: algo.Decision{Allowed: true, Source: algo.SourceTrial}, cost: 1, keyed: true, charged: 1, served: true}},
	{name: "on trial, bad cost", l: func() algo.Limiter { return algo.Shadow(fails(algo.ErrCost)()) }, open: true,
		want: answer{result: telemetry.FailedClosed, status: "capacity", cost: 1, keyed: true, err: algo.ErrCost}},
	{name: "switched off", l: func() algo.Limiter { s := algo.NewSwitch(decides(denies(algo.Quota, 1))()); s.Off(); return s },
		want: answer{status: "ok", event: algo.Decision{Allowed: true, Source: algo.SourceOff}, cost: 1, keyed: true, charged: 1, served: true}},
	{name: "exempt", l: decides(denies(algo.Quota, 1)), skip: true, quiet: true,
		want: answer{status: "ok", served: true}},
}

func unlimited() algo.Decision {
	lease, _ := algo.Unlimited().Acquire(context.Background(), "", 1)
	return lease.Decision
}

func onTrial(d algo.Decision) algo.Decision {
	d.Allowed, d.Reason, d.Trial, d.Source = true, algo.Admitted, d.Reason, algo.SourceTrial
	return d
}
