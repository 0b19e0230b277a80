// Grpc limits a gRPC service by client address, in the fewest lines.
package main

import (
	"context"
	"flag"
	"log"
	"net"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

type service struct {
	testpb.UnimplementedTestServiceServer
}

// EmptyCall answers with nothing.
func (service) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}

func main() {
	address := flag.String("grpc", "127.0.0.1:9090", "address to serve on")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}

	users := algo.Must(algo.NewTokenBucket(algo.PerSecond(10), algo.Burst(20)))
	server := grpc.NewServer(grpcmw.ServerOptions(users, rpckey.PeerIP())...)

	testpb.RegisterTestServiceServer(server, service{})
	log.Fatal(server.Serve(listener))
}
