package service_test

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/examples/gateway/config"
	"github.com/sluice-go/sluice/examples/rls/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	under = rls.RateLimitResponse_OK
	over  = rls.RateLimitResponse_OVER_LIMIT
)

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
		Store: store, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Observe: func(e telemetry.Event) {
			select {
			case r.events <- e:
			default: // what nobody looks at is lost
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

// The lookup is that of envoyproxy/ratelimit.
func TestLookup(t *testing.T) {
	r := newRig(t, `
domains:
  - name: d
    descriptors:
      - {key: path, value: /a, name: exact, limit: 1/s}
      - {key: path, value: "/a*", name: prefix, limit: 1/s}
      - {key: path, value: "/ab*", name: longer, limit: 1/s}
      - {key: path, name: any, limit: 1/s}
      - key: plan
        value: free
        descriptors:
          - {key: user, name: free-user, limit: 1/s}
          - {key: user, value: root, name: root, limit: 1/s}
      - key: plan
        name: plan
        limit: 1/s
`, nil)
	for _, test := range []struct {
		want    string
		entries []string
	}{
		{"exact", []string{"path=/a"}},
		{"prefix", []string{"path=/ac"}},
		{"longer", []string{"path=/abc"}},
		{"any", []string{"path=/x"}},
		{"any", []string{"path="}},
		{"free-user", []string{"plan=free", "user=ann"}},
		{"root", []string{"plan=free", "user=root"}},
		{"plan", []string{"plan=gold"}},
		{"", []string{"plan=free"}},
		{"", []string{"plan=gold", "user=ann"}},
		{"", []string{"plan=free", "user=ann", "path=/a"}},
		{"", []string{"user=ann"}},
		{"", []string{"user=ann", "plan=free"}},
	} {
		require.Equal(t, test.want, r.limitOf(test.entries...), "%v", test.entries)
	}
}

// One descriptor over its limit denies the request, and the others are not
// charged.
func TestAnyDeniesAndNoneIsCharged(t *testing.T) {
	r := newRig(t, `
domains:
  - name: d
    descriptors:
      - {key: user, name: user, limit: 10/h}
      - {key: tenant, name: tenant, limit: 2/h}
      - {key: free, unlimited: true}
`, nil)
	anyDenies(t, r)
}

func anyDenies(t *testing.T, r *rig) {
	both := []*ratelimit.RateLimitDescriptor{descriptor("user=ann"), descriptor("tenant=t"), descriptor("free=x"), descriptor("unknown=x")}
	for want := uint32(9); want >= 8; want-- {
		resp := r.ask(0, both...)
		require.Equal(t, under, resp.OverallCode)
		require.Equal(t, want, resp.Statuses[0].LimitRemaining)
		require.Equal(t, want-8, resp.Statuses[1].LimitRemaining)
	}
	for range 3 {
		resp := r.ask(0, both...)
		require.Equal(t, over, resp.OverallCode)
		require.Len(t, resp.Statuses, 4)
		require.Equal(t, under, resp.Statuses[0].Code, "it had room")
		require.Equal(t, over, resp.Statuses[1].Code)
		require.Zero(t, resp.Statuses[1].LimitRemaining)
		require.Equal(t, under, resp.Statuses[2].Code)
		require.Equal(t, uint32(math.MaxUint32), resp.Statuses[2].LimitRemaining)
		require.Equal(t, under, resp.Statuses[3].Code)
		require.Nil(t, resp.Statuses[3].CurrentLimit)
	}
	resp := r.ask(0, descriptor("user=ann"))
	require.Equal(t, uint32(7), resp.Statuses[0].LimitRemaining, "three denials charged nothing")
	require.Equal(t, uint32(9), r.ask(0, descriptor("user=bob")).Statuses[0].LimitRemaining, "a bucket for each value")
}

func TestHits(t *testing.T) {
	r := newRig(t, "domains: [{name: d, descriptors: [{key: a, limit: 100/h}, {key: b, limit: 10/h}]}]", nil)
	resp := r.ask(7, descriptor("a=1"), descriptor("b=1"))
	require.Equal(t, uint32(93), resp.Statuses[0].LimitRemaining)
	require.Equal(t, uint32(3), resp.Statuses[1].LimitRemaining)

	own := descriptor("a=1")
	own.HitsAddend = wrapperspb.UInt64(20)
	resp = r.ask(3, own, descriptor("b=1"))
	require.Equal(t, uint32(73), resp.Statuses[0].LimitRemaining, "the number of the descriptor stands above that of the request")
	require.Equal(t, uint32(0), resp.Statuses[1].LimitRemaining)

	own.HitsAddend = wrapperspb.UInt64(0)
	resp = r.ask(0, own)
	require.Equal(t, under, resp.OverallCode)
	require.Equal(t, uint32(73), resp.Statuses[0].LimitRemaining, "none looks")

	require.Equal(t, over, r.ask(101, descriptor("a=2")).OverallCode, "it can never fit")
	require.Equal(t, uint32(99), r.ask(0, descriptor("a=2")).Statuses[0].LimitRemaining)
	resp = r.ask(30, descriptor("a=3"), descriptor("a=3"), descriptor("a=3"), descriptor("a=3"))
	require.Equal(t, over, resp.OverallCode, "the same descriptor four times adds up")
}

// What a status and the headers tell.
func TestTells(t *testing.T) {
	r := newRig(t, `
domains:
  - name: d
    descriptors:
      - {key: a, name: a, limit: 60/min burst 10}
      - {key: b, name: b, limit: fixed-window 5/15m}
  - name: quiet
    headers: none
    descriptors: [{key: a, limit: 1/h}]
`, nil)
	resp := r.ask(4, descriptor("a=1"), descriptor("b=1"))
	a, b := resp.Statuses[0], resp.Statuses[1]
	require.Equal(t, "a", a.CurrentLimit.Name)
	require.Equal(t, uint32(60), a.CurrentLimit.RequestsPerUnit)
	require.Equal(t, rls.RateLimitResponse_RateLimit_MINUTE, a.CurrentLimit.Unit)
	reset := a.DurationUntilReset.AsDuration()
	require.True(t, reset > 3*time.Second && reset <= 4*time.Second, "%v for 4 of 60 a minute", reset)
	require.Equal(t, rls.RateLimitResponse_RateLimit_UNKNOWN, b.CurrentLimit.Unit, "15 minutes are no unit")
	require.Equal(t, uint32(1), b.LimitRemaining)
	require.Equal(t, map[string]string{
		"ratelimit-policy": `"a";q=10;w=10, "b";q=5;w=900`,
		"ratelimit":        `"a";r=6;t=1, "b";r=1;t=900`,
	}, headers(resp))

	denied := headers(r.ask(9, descriptor("a=1")))
	require.Equal(t, "3", denied["retry-after"])
	require.NotContains(t, headers(r.ask(11, descriptor("a=1"))), "retry-after", "it never fits")

	quiet := &rls.RateLimitRequest{Domain: "quiet", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor("a=1")}}
	require.Empty(t, r.send(quiet).ResponseHeadersToAdd)
	require.Empty(t, r.send(quiet).ResponseHeadersToAdd)

	e := <-r.events
	require.Equal(t, "a", e.Policy)
	require.Equal(t, telemetry.Allowed, e.Result)
	require.Equal(t, telemetry.GRPC, e.Transport)
	require.Equal(t, int64(4), e.Cost)
	require.Equal(t, "b", (<-r.events).Policy)
	e = <-r.events
	require.Equal(t, telemetry.Denied, e.Result)
	require.Equal(t, int(codes.ResourceExhausted), e.Status)
}

func headers(r *rls.RateLimitResponse) map[string]string {
	all := map[string]string{}
	for _, h := range r.ResponseHeadersToAdd {
		all[h.Key] = h.Value
	}
	return all
}

// A domain that the file does not know is not limited.
func TestUnknownDomain(t *testing.T) {
	r := newRig(t, "domains: [{name: d, descriptors: [{key: a, limit: 1/h}]}]", nil)
	resp := r.send(&rls.RateLimitRequest{Domain: "x", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor("a=1"), descriptor("a=1")}})
	require.Equal(t, under, resp.OverallCode)
	require.Len(t, resp.Statuses, 2)
}

// What a request says of its own limit stands above the file, also where the
// file knows nothing.
func TestOverride(t *testing.T) {
	r := newRig(t, "domains: [{name: d, descriptors: [{key: a, limit: 1/h}]}]", nil)
	with := func(key string, n uint32, unit envoytype.RateLimitUnit) *ratelimit.RateLimitDescriptor {
		d := descriptor(key)
		d.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: n, Unit: unit}
		return d
	}
	for _, key := range []string{"a=1", "other=1"} {
		for left := uint32(3); left > 0; left-- {
			resp := r.ask(0, with(key, 3, envoytype.RateLimitUnit_HOUR))
			require.Equal(t, under, resp.OverallCode)
			require.Equal(t, left-1, resp.Statuses[0].LimitRemaining)
			require.Equal(t, uint32(3), resp.Statuses[0].CurrentLimit.RequestsPerUnit)
			require.Equal(t, rls.RateLimitResponse_RateLimit_HOUR, resp.Statuses[0].CurrentLimit.Unit)
		}
		require.Equal(t, over, r.ask(0, with(key, 3, envoytype.RateLimitUnit_HOUR)).OverallCode)
	}
	require.Equal(t, under, r.ask(0, descriptor("a=1")).OverallCode, "the limit of the file is another bucket")
	require.Equal(t, over, r.ask(0, with("a=2", 0, envoytype.RateLimitUnit_DAY)).OverallCode)
	elsewhere := r.send(&rls.RateLimitRequest{Domain: "e", Descriptors: []*ratelimit.RateLimitDescriptor{with("a=1", 3, envoytype.RateLimitUnit_HOUR)}})
	require.Equal(t, under, elsewhere.OverallCode, "another domain is another bucket")
	for n := range uint32(mostOverrides + 100) {
		require.Equal(t, n, r.ask(0, with("a=3", n+1, envoytype.RateLimitUnit_YEAR)).Statuses[0].LimitRemaining)
	}
	for unit := range envoytype.RateLimitUnit_name {
		if unit != int32(envoytype.RateLimitUnit_UNKNOWN) {
			require.Equal(t, under, r.ask(0, with("a=4", 7, envoytype.RateLimitUnit(unit))).OverallCode)
		}
	}
}

// mostOverrides is how many the service keeps.
const mostOverrides = 1024

func TestShadowAndDelay(t *testing.T) {
	r := newRig(t, `
domains:
  - name: d
    descriptors:
      - {key: trial, limit: 1/h, shadow: true}
      - {key: queue, name: queue, limit: 1/h burst 1 wait 10h}
      - {key: a, limit: 5/h}
`, nil)
	for range 3 {
		require.Equal(t, under, r.ask(0, descriptor("trial=1")).OverallCode)
	}
	require.Equal(t, under, r.ask(0, descriptor("queue=1"), descriptor("a=1")).OverallCode)
	for range 3 {
		resp := r.ask(0, descriptor("queue=1"), descriptor("a=1"))
		require.Equal(t, over, resp.OverallCode, "nobody here can wait")
		require.Equal(t, over, resp.Statuses[0].Code)
		require.Equal(t, under, resp.Statuses[1].Code)
		require.Equal(t, uint32(4), resp.Statuses[1].LimitRemaining)
		require.Equal(t, "3600", headers(resp)["retry-after"])
	}
}

func TestRefused(t *testing.T) {
	r := newRig(t, "domains: [{name: d, descriptors: [{key: a, limit: 5/h}]}]", nil)
	negative, huge, bare := descriptor("a=1"), descriptor("a=1"), descriptor("a=1")
	negative.HitsAddend, negative.IsNegativeHits = wrapperspb.UInt64(1), true
	huge.HitsAddend = wrapperspb.UInt64(math.MaxUint64)
	bare.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1}
	for _, test := range []struct {
		want    string
		request *rls.RateLimitRequest
	}{
		{"domain is empty", &rls.RateLimitRequest{Descriptors: []*ratelimit.RateLimitDescriptor{descriptor("a=1")}}},
		{"descriptors is empty", &rls.RateLimitRequest{Domain: "d"}},
		{"descriptors[1]: entries is empty", &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor("a=1"), {}}}},
		{"descriptors[0]: is_negative_hits is not supported", &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{negative}}},
		{"descriptors[0]: hits_addend is 18446744073709551615", &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{huge}}},
		{"descriptors[0]: limit: unit is UNKNOWN", &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{bare}}},
	} {
		_, err := r.client.ShouldRateLimit(t.Context(), test.request)
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.ErrorContains(t, err, test.want)
	}
	require.Equal(t, uint32(4), r.ask(0, descriptor("a=1")).Statuses[0].LimitRemaining, "nothing was charged")
}

// A change of the file keeps what is owed where a limit stays, also when other
// limits come and go around it.
func TestReload(t *testing.T) {
	r := newRig(t, "domains: [{name: d, descriptors: [{key: a, limit: 5/h}]}]", nil)
	require.Equal(t, uint32(0), r.ask(5, descriptor("a=1")).Statuses[0].LimitRemaining)
	require.NoError(t, r.service.Apply(r.parse(`
domains:
  - {name: e, descriptors: [{key: a, limit: 5/h}]}
  - {name: d, descriptors: [{key: b, limit: 1/h}, {key: a, value: x, limit: 1/h}, {key: a, limit: 6/h burst 5}]}
`)))
	resp := r.ask(0, descriptor("a=1"))
	require.Equal(t, over, resp.OverallCode)
	require.Equal(t, uint32(6), resp.Statuses[0].CurrentLimit.RequestsPerUnit)
	require.Equal(t, under, r.ask(0, descriptor("b=1")).OverallCode)
	require.ErrorContains(t, r.service.Apply(r.parse("routes: [{pattern: /, upstream: 'http://a'}]")), "domains: is missing")
	require.ErrorContains(t, r.service.Apply(r.parse("domains: [{name: d, descriptors: []}]\noverload: off")), "f:2:1: overload: has changed")
	require.Equal(t, over, r.ask(0, descriptor("a=1")).OverallCode)
}
