package grpcmw

import (
	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// ServerOptions are what limits a whole server, unary calls and streams
// together, with one limiter:
//
//	srv := grpc.NewServer(grpcmw.ServerOptions(perClient, rpckey.PeerIP())...)
//
// The interceptors run after those that were given to grpc.NewServer earlier,
// and before later ones. Recovery from panics, authentication that the key
// depends on, and logging belong before them; several limits are written one
// after the other, and what an inner one denies is given back to the outer ones.
//
// It takes every option for servers. It panics if l or key is nil, and if an
// option does not fit.
func ServerOptions(l algo.Limiter, key keyfunc.RPC, opts ...Option) []grpc.ServerOption {
	g := newGate("ServerOptions", forStreams, l, key, opts)
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(g.unary),
		grpc.ChainStreamInterceptor(g.stream),
	}
}
