package grpcmw_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// Two limits on a server, and the trailers of an admitted call.
func TestRateTrailers(t *testing.T) {
	bucket := algo.Must(algo.NewTokenBucket(algo.Per(20, 2*60e9)))
	inFlight := &slots{limit: 64}
	opts := append(
		grpcmw.ServerOptions(bucket, rpckey.PeerIP(), grpcmw.WithRateTrailers(), grpcmw.WithName("burst")),
		grpcmw.ServerOptions(inFlight, rpckey.Global(), grpcmw.WithRateTrailers())...)
	c := client(t, &service{duplex: echo}, opts...)
	for name, ask := range map[string]func(context.Context, testpb.TestServiceClient) (metadata.MD, metadata.MD, error){
		"unary": call, "stream": callStream,
	} {
		bucket.Reset("127.0.0.1")
		_, trailer, _ := ask(t.Context(), c)
		require.Equal(t, []string{`"burst";q=20;w=120`, `"64-concurrent-requests";q=64;qu="concurrent-requests"`}, trailer["ratelimit-policy"], name)
		require.Equal(t, []string{`"burst";r=19;t=6`, `"64-concurrent-requests";r=63`}, trailer["ratelimit"], name)
	}
}

func TestRateTrailersSurviveFailure(t *testing.T) {
	c := client(t, &service{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		return nil, status.Error(codes.NotFound, "")
	}}, grpcmw.ServerOptions(plenty(), rpckey.PeerIP(), grpcmw.WithRateTrailers())...)
	header, trailer, err := call(t.Context(), c)
	require.Equal(t, codes.NotFound, status.Code(err))
	requireNoHeader(t, header)
	require.Len(t, trailer["ratelimit"], 1)
}

// Numbers are clamped to the range of an Integer of RFC 9651. A limiter that
// has no description, or was not asked, has fewer items.
func TestRateTrailerValues(t *testing.T) {
	const most = "999999999999999"
	for _, row := range []struct {
		name      string
		l         algo.Limiter
		opts      []grpcmw.Option
		ratelimit []string
	}{
		{"large", always(algo.Decision{Allowed: true, Limit: 1 << 62, Remaining: 1 << 62}), nil, []string{`"default";r=` + most}},
		{"below zero", always(algo.Decision{Allowed: true, Limit: 1, Remaining: -1}), nil, []string{`"default";r=0`}},
		{"nothing spent", always(algo.Decision{Allowed: true, Limit: 5, Remaining: 5, NextAfter: time.Second}), nil, []string{`"default";r=5`}},
		{"for ever", always(algo.Decision{Allowed: true, Limit: 5, NextAfter: algo.Forever}), nil, []string{`"default";r=0`}},
		{"switched off", off(), nil, nil},
		{"unlimited", algo.Unlimited(), nil, nil},
		{"on trial", always(algo.Decision{Allowed: true, Limit: 5, Source: algo.SourceTrial}), nil, nil},
		{"unknown", always(algo.Decision{Allowed: true}), nil, nil},
		{"no limit in flight", &slots{limit: math.MaxInt32}, nil, nil},
		{"no limit in flight, by a limiter without a description", always(algo.Decision{Allowed: true, Limit: math.MaxInt32, Remaining: 9}), nil, nil},
		{"failed open", failing(errors.New("down")), []grpcmw.Option{grpcmw.WithFailOpen()}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := new(transport)
			ctx := grpc.NewContextWithServerTransportStream(t.Context(), r)
			i := grpcmw.UnaryServerInterceptor(row.l, rpckey.Global(), append(row.opts, grpcmw.WithRateTrailers())...)
			require.NoError(t, intercept(ctx, i))
			sent := metadata.Join(r.trails...)
			require.Equal(t, row.ratelimit, sent["ratelimit"])
			require.Empty(t, sent["ratelimit-policy"])
		})
	}
}

// off is a limiter that is switched off.
func off() algo.Limiter {
	s := algo.NewSwitch(plenty())
	s.Off()
	return s
}
