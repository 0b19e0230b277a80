package hints_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/grpcmw/hints"
	"github.com/sluice-go/sluice/internal/workshop/grpctest"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func fromMesh(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, "mesh")) > 0
}

// TestPriority: the class of a trusted caller reaches the handlers, of unary calls and
// of streams, and no other caller's does.
func TestPriority(t *testing.T) {
	var got adaptive.Class
	svc := &grpctest.Service{
		Unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			got = adaptive.ClassFrom(ctx)
			return &testpb.SimpleResponse{}, nil
		},
		Duplex: func(ss testpb.TestService_FullDuplexCallServer) error {
			got = adaptive.ClassFrom(ss.Context())
			return nil
		},
	}
	conn := grpctest.Dial(t, grpctest.Serve(t, svc, hints.PriorityOptions(fromMesh)...), hints.PriorityDialOptions()...)
	c := testpb.NewTestServiceClient(conn)
	trusted := metadata.AppendToOutgoingContext(context.Background(), "mesh", "yes")
	for _, row := range []struct {
		ctx  context.Context
		want adaptive.Class
	}{
		{adaptive.WithClass(trusted, adaptive.Critical), adaptive.Critical},
		{adaptive.WithClass(trusted, adaptive.Sheddable), adaptive.Sheddable},
		{adaptive.WithClass(context.Background(), adaptive.Critical), adaptive.Normal},
		{metadata.AppendToOutgoingContext(adaptive.WithClass(trusted, adaptive.Low), "priority", "u=1"), adaptive.High},
		{metadata.AppendToOutgoingContext(trusted, "priority", "u=99"), adaptive.Normal},
		{trusted, adaptive.Normal},
	} {
		got = 255
		_, err := c.UnaryCall(row.ctx, &testpb.SimpleRequest{})
		require.NoError(t, err)
		require.Equal(t, row.want, got)

		got = 255
		ss, err := c.FullDuplexCall(row.ctx)
		require.NoError(t, err)
		_, err = ss.Recv()
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, row.want, got)
	}
}

func TestPriorityWiring(t *testing.T) {
	require.PanicsWithValue(t, "hints: PriorityOptions: the function is nil", func() { hints.PriorityOptions(nil) })
}

// Callers in the mesh may state the class of a call; under overload the less urgent
// ones are denied first.
func ExamplePriorityOptions() {
	limiter := algo.Must(adaptive.New(adaptive.Default(), adaptive.WithPriorities()))
	options := append(hints.PriorityOptions(fromMesh), grpcmw.ServerOptions(limiter, rpckey.Global())...)
	fmt.Println(len(options) > 0 && grpc.NewServer(options...) != nil)
	// Output: true
}

// Calls carry the class of their context on to another service.
func ExamplePriorityDialOptions() {
	options := append(hints.PriorityDialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient("dns:///orders.internal:443", options...)
	fmt.Println(err, conn.Close())
	// Output: <nil> <nil>
}
