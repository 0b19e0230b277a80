package main

import (
	"context"
	"fmt"
	"net"

	"github.com/sluice-go/sluice/grpcmw"
	tapping "github.com/sluice-go/sluice/grpcmw/early"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// worker is the measured service: EmptyCall does the work.
type worker struct {
	testpb.UnimplementedTestServiceServer
	work work
}

func (w worker) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	w.work.do()
	return &testpb.Empty{}, nil
}

func serveRPC(ln net.Listener) error {
	w, err := workOf(*task)
	if err != nil {
		return err
	}
	var opts []grpc.ServerOption
	if *name != "none" {
		l, err := ours(*name)
		if err != nil {
			return fmt.Errorf("over gRPC: %w", err)
		}
		opts = grpcmw.ServerOptions(l, rpcTenant)
		if *tap {
			opts = append(opts, grpc.InTapHandle(tapping.TapHandle(l, rpckey.Global())))
		}
	}
	s := grpc.NewServer(opts...)
	testpb.RegisterTestServiceServer(s, worker{work: w})
	return s.Serve(ln)
}
