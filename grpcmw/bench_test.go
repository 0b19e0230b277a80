package grpcmw_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// plenty admits everything that a test can ask for.
func plenty(opts ...algo.Option) *algo.RateLimiter {
	return algo.Must(algo.NewTokenBucket(algo.PerSecond(1e9), append(opts, algo.Burst(1e9))...))
}

func bareHandler(context.Context, any) (any, error) { return nil, nil }

// callContext is the context of a call as the server makes it.
func callContext() context.Context {
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}})
	return metadata.NewIncomingContext(ctx, metadata.MD{"content-type": {"application/grpc"}, "user-agent": {"test"}})
}

var callInfo = &grpc.UnaryServerInfo{FullMethod: "/grpc.testing.TestService/UnaryCall"}

func BenchmarkUnaryServer(b *testing.B) {
	for _, row := range []struct {
		name string
		key  keyfunc.RPC
	}{
		{"global", rpckey.Global()},
		{"peer", rpckey.PeerIP()},
		{"method", rpckey.FullMethod()},
	} {
		l, ctx := plenty(), callContext()
		b.Run(row.name+"/limiter and key alone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				key, err := row.key(ctx, callInfo.FullMethod)
				if err != nil {
					b.Fatal(err)
				}
				lease, err := l.Acquire(ctx, key, 1)
				if err != nil || !lease.Allowed {
					b.Fatal(err, lease.Decision)
				}
				lease.Release(algo.Succeeded)
			}
		})
		b.Run(row.name+"/interceptor", func(b *testing.B) {
			intercept := grpcmw.UnaryServerInterceptor(l, row.key)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := intercept(ctx, nil, callInfo, bareHandler); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The exempt path, of a health check for example.
func BenchmarkUnaryServerExempt(b *testing.B) {
	intercept := grpcmw.UnaryServerInterceptor(plenty(), rpckey.Global())
	info := &grpc.UnaryServerInfo{FullMethod: "/grpc.health.v1.Health/Check"}
	ctx := callContext()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := intercept(ctx, nil, info, bareHandler); err != nil {
			b.Fatal(err)
		}
	}
}

// A refusal, before anything is written.
func BenchmarkUnaryServerDenied(b *testing.B) {
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	intercept := grpcmw.UnaryServerInterceptor(l, rpckey.Global())
	ctx := callContext()
	intercept(ctx, nil, callInfo, bareHandler)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := intercept(ctx, nil, callInfo, bareHandler); err == nil {
			b.Fatal("admitted")
		}
	}
}

func TestAdmittedAllocatesNothing(t *testing.T) {
	ctx := callContext()
	for name, key := range map[string]keyfunc.RPC{
		"global": rpckey.Global(), "peer": rpckey.PeerIP(), "method": rpckey.FullMethod(),
	} {
		intercept := grpcmw.UnaryServerInterceptor(plenty(), key)
		require.Zero(t, testing.AllocsPerRun(200, func() {
			intercept(ctx, nil, callInfo, bareHandler)
		}), name)
	}
}

// The options with work for every call.
func TestOptionsAllocations(t *testing.T) {
	ctx := callContext()
	for _, row := range []struct {
		name string
		opt  grpcmw.Option
		most float64
	}{
		{"observer", grpcmw.WithObserver(func(telemetry.Event) {}), 0},
		{"cost", grpcmw.WithCost(func(context.Context, string, any) int64 { return 1 }), 0},
		{"exempt", grpcmw.WithExempt("/a.B/C", "/d.E/*"), 0},
		{"missing key", grpcmw.WithMissingKey(grpcmw.Shared), 0},
		{"lease in context", grpcmw.WithLeaseInContext(), 2},
	} {
		intercept := grpcmw.UnaryServerInterceptor(plenty(), rpckey.Metadata("user"), row.opt)
		require.LessOrEqual(t, testing.AllocsPerRun(200, func() {
			intercept(ctx, nil, callInfo, bareHandler)
		}), row.most, row.name)
	}
}
