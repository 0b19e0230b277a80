package main

import (
	"context"
	"fmt"
	"net"

	"github.com/sluice-go/sluice/grpcmw"
	tapping "github.com/sluice-go/sluice/grpcmw/early"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Method is the method of the measured service.
const method = "/overload.Service/Do"

type service interface {
	Do(context.Context, *emptypb.Empty) (*emptypb.Empty, error)
}

type worker struct{ work work }

func (w worker) Do(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	w.work.do()
	return &emptypb.Empty{}, nil
}

// description is written by hand: one method on messages that exist needs no
// generated code.
var description = grpc.ServiceDesc{
	ServiceName: "overload.Service",
	HandlerType: (*service)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Do", Handler: func(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
		var e emptypb.Empty
		if err := dec(&e); err != nil {
			return nil, err
		}
		if in == nil {
			return srv.(service).Do(ctx, &e)
		}
		return in(ctx, &e, &grpc.UnaryServerInfo{Server: srv, FullMethod: method},
			func(ctx context.Context, req any) (any, error) { return srv.(service).Do(ctx, req.(*emptypb.Empty)) })
	}}},
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
	s.RegisterService(&description, worker{w})
	return s.Serve(ln)
}
