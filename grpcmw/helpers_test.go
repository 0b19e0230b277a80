package grpcmw_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service answers as its functions say, and counts.
type service struct {
	testpb.UnimplementedTestServiceServer
	unary  func(ctx context.Context, in *testpb.SimpleRequest) (*testpb.SimpleResponse, error)
	duplex func(ss testpb.TestService_FullDuplexCallServer) error
	output func(in *testpb.StreamingOutputCallRequest, ss testpb.TestService_StreamingOutputCallServer) error
	input  func(ss testpb.TestService_StreamingInputCallServer) error
	begun  atomic.Int64
}

func (s *service) UnaryCall(ctx context.Context, in *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	s.begun.Add(1)
	if s.unary == nil {
		return &testpb.SimpleResponse{}, nil
	}
	return s.unary(ctx, in)
}

func (s *service) FullDuplexCall(ss testpb.TestService_FullDuplexCallServer) error {
	s.begun.Add(1)
	if s.duplex == nil {
		return echo(ss)
	}
	return s.duplex(ss)
}

func (s *service) StreamingOutputCall(in *testpb.StreamingOutputCallRequest, ss testpb.TestService_StreamingOutputCallServer) error {
	s.begun.Add(1)
	return s.output(in, ss)
}

func (s *service) StreamingInputCall(ss testpb.TestService_StreamingInputCallServer) error {
	s.begun.Add(1)
	return s.input(ss)
}

// serve runs a server with svc and the health service, and returns its address.
// The server has stopped, and all handlers have returned, when the test ends.
func serve(t testing.TB, svc *service, opts ...grpc.ServerOption) string {
	t.Helper()
	srv := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	testpb.RegisterTestServiceServer(srv, svc)
	healthpb.RegisterHealthServer(srv, health.NewServer())
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(lis)
	}()
	t.Cleanup(func() {
		srv.Stop()
		<-done
	})
	return lis.Addr().String()
}

func dial(t testing.TB, addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("passthrough:///"+addr, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// client of a server with the given options.
func client(t testing.TB, svc *service, opts ...grpc.ServerOption) testpb.TestServiceClient {
	t.Helper()
	return testpb.NewTestServiceClient(dial(t, serve(t, svc, opts...)))
}

// script is a limiter with scripted answers; by default it admits.
type script struct {
	answer func(key string, n int64) (algo.Decision, error)

	mu       sync.Mutex
	keys     []string
	costs    []int64
	outcomes []algo.Outcome
}

// always answers every question with d.
func always(d algo.Decision) *script {
	return &script{answer: func(string, int64) (algo.Decision, error) { return d, nil }}
}

// failing has err for every question.
func failing(err error) *script {
	return &script{answer: func(string, int64) (algo.Decision, error) { return algo.Decision{}, err }}
}

func (s *script) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	s.mu.Lock()
	s.keys, s.costs = append(s.keys, key), append(s.costs, n)
	s.mu.Unlock()
	d, err := algo.Decision{Allowed: true, Limit: 10, Remaining: 9}, error(nil)
	if s.answer != nil {
		d, err = s.answer(key, n)
	}
	if err != nil || !d.Allowed {
		return algo.NewLease(d, nil, algo.Handle{}), err
	}
	return algo.NewLease(d, s, algo.Handle{Key: key, N: n}), nil
}

func (s *script) Release(_ algo.Handle, o algo.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes = append(s.outcomes, o)
}

func (s *script) Settle(algo.Handle, int64) {}

// asked returns the keys so far.
func (s *script) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.keys...)
}

func (s *script) released() []algo.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]algo.Outcome(nil), s.outcomes...)
}

// slots is an exact in-flight limiter, for counting leaks.
type slots struct {
	limit            int64
	inFlight         atomic.Int64
	acquired, denied atomic.Int64
	over             atomic.Bool // was ever above the limit, or below 0
	outcomes         [algo.Untimed << 1]atomic.Int64
}

func (s *slots) Acquire(_ context.Context, key string, n int64) (algo.Lease, error) {
	for {
		now := s.inFlight.Load()
		d := algo.Decision{Limit: s.limit, Remaining: max(s.limit-now-n, 0)}
		if now+n > s.limit {
			d.Reason, d.RetryAfter = algo.Overload, time.Millisecond
			s.denied.Add(1)
			return algo.NewLease(d, nil, algo.Handle{}), nil
		}
		if s.inFlight.CompareAndSwap(now, now+n) {
			d.Allowed = true
			if n == 0 {
				return algo.NewLease(d, nil, algo.Handle{}), nil
			}
			s.acquired.Add(1)
			return algo.NewLease(d, s, algo.Handle{Key: key, N: n}), nil
		}
	}
}

func (s *slots) Release(h algo.Handle, o algo.Outcome) {
	s.outcomes[o].Add(1)
	if s.inFlight.Add(-h.N) < 0 {
		s.over.Store(true)
	}
}

func (s *slots) Settle(algo.Handle, int64) {}

func (s *slots) About() algo.Description {
	return algo.Description{Quota: s.limit, Unit: algo.ConcurrentRequests, NeedsRelease: true}
}

// requireIdle waits until nothing is in flight and all that was acquired is released:
// servers end their handlers after the client has its answer, and may begin some after it
// has left.
func (s *slots) requireIdle(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		released := int64(0)
		for i := range s.outcomes {
			released += s.outcomes[i].Load()
		}
		return s.inFlight.Load() == 0 && released == s.acquired.Load()
	}, 10*time.Second, time.Millisecond)
	require.False(t, s.over.Load())
}

// A few decisions.
var (
	quotaFor = func(d time.Duration) algo.Decision {
		return algo.Decision{Reason: algo.Quota, Limit: 1, RetryAfter: d, NextAfter: d, ResetAfter: d}
	}
	overloadFor = func(d time.Duration) algo.Decision {
		return algo.Decision{Reason: algo.Overload, Limit: 1, RetryAfter: d}
	}
	never = algo.Decision{Reason: algo.Never, Limit: 1, RetryAfter: algo.Forever}
)

// details of a status, by type.
type details struct {
	info  *errdetails.ErrorInfo
	retry *errdetails.RetryInfo
	quota *errdetails.QuotaFailure
}

func detailsOf(t *testing.T, err error) details {
	t.Helper()
	var d details
	for _, m := range status.Convert(err).Details() {
		switch m := m.(type) {
		case *errdetails.ErrorInfo:
			require.Nil(t, d.info)
			d.info = m
		case *errdetails.RetryInfo:
			require.Nil(t, d.retry)
			d.retry = m
		case *errdetails.QuotaFailure:
			require.Nil(t, d.quota)
			d.quota = m
		default:
			require.Fail(t, "unexpected detail", "%T", m)
		}
	}
	return d
}
