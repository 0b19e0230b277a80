package service_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/rls/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	under = rls.RateLimitResponse_OK
	over  = rls.RateLimitResponse_OVER_LIMIT
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// rig is a service on a socket and the published client before it.
type rig struct {
	t       *testing.T
	service *service.Service
	client  rls.RateLimitServiceClient
	events  chan telemetry.Event
}

func newRig(t *testing.T, file string, store *distributed.Store) *rig {
	t.Helper()
	r := &rig{t: t, events: make(chan telemetry.Event, 1000)}
	var err error
	r.service, err = service.New(r.parse(file), service.Options{
		Store: store, Log: quiet,
		Observe: func(e telemetry.Event) {
			select {
			case r.events <- e:
			default: // unread answers are lost
			}
		},
	})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(server, r.service)
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(); server.Stop() })
	r.client = rls.NewRateLimitServiceClient(conn)
	return r
}

func (r *rig) parse(file string) *config.File {
	r.t.Helper()
	f, err := config.Parse("f", []byte(file))
	require.NoError(r.t, err)
	return f
}

// descriptor is made of entries "key=value".
func descriptor(entries ...string) *ratelimit.RateLimitDescriptor {
	d := &ratelimit.RateLimitDescriptor{}
	for _, e := range entries {
		key, value, _ := strings.Cut(e, "=")
		d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

func (r *rig) send(q *rls.RateLimitRequest) *rls.RateLimitResponse {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	resp, err := r.client.ShouldRateLimit(ctx, q)
	require.NoError(r.t, err)
	return resp
}

// ask sends descriptors to the domain d.
func (r *rig) ask(hits uint32, ds ...*ratelimit.RateLimitDescriptor) *rls.RateLimitResponse {
	r.t.Helper()
	return r.send(&rls.RateLimitRequest{Domain: "d", HitsAddend: hits, Descriptors: ds})
}

// limitOf names the limit that a descriptor meets, "" if none.
func (r *rig) limitOf(entries ...string) string {
	r.t.Helper()
	return r.ask(0, descriptor(entries...)).Statuses[0].GetCurrentLimit().GetName()
}

// headers are the fields that an answer adds.
func headers(r *rls.RateLimitResponse) map[string]string {
	all := map[string]string{}
	for _, h := range r.ResponseHeadersToAdd {
		all[h.Key] = h.Value
	}
	return all
}
