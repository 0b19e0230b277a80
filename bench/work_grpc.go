package main

import (
	"context"
	"errors"
	"net"

	grpcratelimit "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/ratelimit"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
)

// overGRPC calls a handler that does nothing, alone and behind interceptors.
func overGRPC() []contender {
	cs := []contender{{"bare handler", floor, call(nil)}}
	for _, k := range []struct {
		name string
		key  keyfunc.RPC
	}{
		{"sluice RPCGlobal", rpckey.Global()},
		{"sluice FullMethod", rpckey.FullMethod()},
		{"sluice PeerIP", rpckey.PeerIP()},
	} {
		l := algo.Must(algo.NewTokenBucket(algo.PerSecond(fast), algo.Burst(huge)))
		cs = append(cs, contender{k.name, ours, call(grpcmw.UnaryServerInterceptor(l, k.key))})
	}
	xtime := grpcratelimit.UnaryServerInterceptor(byXTime{rate.NewLimiter(fast, huge)})
	return append(cs, contender{"go-grpc-middleware, x/time/rate, no keys", peer, call(xtime)})
}

// byXTime is how the documentation of go-grpc-middleware brings in a limiter.
// It is handed the context only, and has no keys.
type byXTime struct{ limiter *rate.Limiter }

func (x byXTime) Limit(context.Context) error {
	if !x.limiter.Allow() {
		return errSpent
	}
	return nil
}

var errSpent = errors.New("rate limit spent")

// call makes the calls that a server of google.golang.org/grpc would make, from
// a peer whose address it knows. It is for one goroutine.
func call(intercept grpc.UnaryServerInterceptor) func(int) int {
	if intercept == nil {
		intercept = func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			return h(ctx, req)
		}
	}
	ctx := grpcpeer.NewContext(context.Background(),
		&grpcpeer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}})
	ctx = metadata.NewIncomingContext(ctx, metadata.MD{"user-agent": {"bench"}})
	info := &grpc.UnaryServerInfo{FullMethod: "/orders.v1.Orders/List"}
	served := 0
	handler := func(context.Context, any) (any, error) { served++; return nil, nil }
	return func(n int) int {
		before := served
		for range n {
			if _, err := intercept(ctx, nil, info, handler); err != nil {
				break
			}
		}
		return served - before
	}
}
