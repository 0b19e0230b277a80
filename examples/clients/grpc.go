package clients

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw/client"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// GRPC repeats what the service config of the server says, and calls that never left the client.
// The interceptors pace calls, not the attempts of which a call consists.
func GRPC(target string, partner algo.Limiter, opts ...grpc.DialOption) (Call, *grpc.ClientConn, error) {
	opts = append(opts, client.DialOptions(partner, rpckey.Global())...)
	opts = append(opts, grpc.WithDisableRetry())
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		return nil, nil, err
	}
	api := grpc_health_v1.NewHealthClient(conn)
	return func(ctx context.Context) error {
		_, err := api.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err
	}, conn, nil
}
