package service_test

import (
	"math"
	"strings"
	"testing"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A domain that the file does not know is not limited.
func TestUnknownDomain(t *testing.T) {
	r := newRig(t, "domains: [{name: d, descriptors: [{key: a, limit: 1/h}]}]", nil)
	resp := r.send(&rls.RateLimitRequest{Domain: "x", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor("a=1"), descriptor("a=1")}})
	require.Equal(t, under, resp.OverallCode)
	require.Len(t, resp.Statuses, 2)
}

// The limit in a request overrides the file, also where the file knows nothing.
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
	// A value and a domain that look like the ends of each other's keys.
	for _, q := range []struct{ domain, entry string }{{"e", "a=foo\x001:z/1:y"}, {"e\x001:a/11:foo", "z=y"}} {
		d := with(q.entry, 1, envoytype.RateLimitUnit_HOUR)
		resp := r.send(&rls.RateLimitRequest{Domain: q.domain, Descriptors: []*ratelimit.RateLimitDescriptor{d}})
		require.Equal(t, under, resp.OverallCode, "%q", q)
	}
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
		require.Equal(t, over, resp.OverallCode, "no caller can wait")
		require.Equal(t, over, resp.Statuses[0].Code)
		require.Equal(t, under, resp.Statuses[1].Code)
		require.Equal(t, uint32(4), resp.Statuses[1].LimitRemaining)
		require.Equal(t, "3600", headers(resp)["retry-after"])
	}
}

func TestRefused(t *testing.T) {
	r := newRig(t, "domains: [{name: d, descriptors: [{key: a, limit: 5/h}]}]", nil)
	huge, bare := descriptor("a=1"), descriptor("a=1")
	huge.HitsAddend = wrapperspb.UInt64(math.MaxUint64)
	bare.Limit = &ratelimit.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1}
	for _, test := range []struct {
		want    string
		request *rls.RateLimitRequest
	}{
		{"domain is empty", &rls.RateLimitRequest{Descriptors: []*ratelimit.RateLimitDescriptor{descriptor("a=1")}}},
		{"descriptors is empty", &rls.RateLimitRequest{Domain: "d"}},
		{"descriptors[1]: entries is empty", &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor("a=1"), {}}}},
		{"descriptors[0]: limit: unit is UNKNOWN", &rls.RateLimitRequest{Domain: "d", Descriptors: []*ratelimit.RateLimitDescriptor{bare}}},
	} {
		_, err := r.client.ShouldRateLimit(t.Context(), test.request)
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.ErrorContains(t, err, test.want)
	}
	require.Equal(t, over, r.ask(1, huge).OverallCode, "an error would let it pass")
	require.Equal(t, uint32(4), r.ask(0, descriptor("a=1")).Statuses[0].LimitRemaining, "nothing was charged")
}

// A change of the file keeps debt where a limit stays, also when other
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

// Values come from clients. None may end in an error, which Envoy lets pass by default.
func TestNoValueIsAnError(t *testing.T) { noValueIsAnError(t, newRig(t, valuesFile, nil)) }

const valuesFile = `
domains:
  - name: d
    descriptors: [{key: a, limit: 5/h}, {key: b, limit: fixed-window 5/h}, {key: c, limit: sliding-log 5/h}]
`

func noValueIsAnError(t *testing.T, r *rig) {
	for _, key := range []string{"a", "b", "c"} {
		for _, value := range []string{"", "\x00", "a b\r\n", "{x}", "é", strings.Repeat("x", 1<<20)} {
			require.Equal(t, over, r.ask(6, descriptor(key+"="+value)).OverallCode)
		}
		require.Equal(t, over, r.ask(math.MaxUint32, descriptor(key+"=y")).OverallCode)
	}
	many := make([]*ratelimit.RateLimitDescriptor, 1000)
	for i := range many {
		many[i] = descriptor("a=z")
	}
	require.Equal(t, over, r.ask(0, many...).OverallCode)
}

// A request of more descriptors than anyone means would occupy Redis for seconds: it is
// over the limit, and charges nothing.
func TestTooManyDescriptors(t *testing.T) {
	r := newRig(t, "domains: [{name: d, descriptors: [{key: a, limit: 5000/h}]}]", nil)
	ds := make([]*ratelimit.RateLimitDescriptor, 1025)
	for i := range ds {
		ds[i] = descriptor("a=1")
	}
	resp := r.ask(1, ds...)
	require.Equal(t, over, resp.OverallCode)
	require.Len(t, resp.Statuses, len(ds))
	require.Equal(t, uint32(4999), r.ask(0, descriptor("a=1")).Statuses[0].LimitRemaining)
	require.Equal(t, under, r.ask(1, ds[1:]...).OverallCode)
}

// A rate of 0 is a ban.
func TestBan(t *testing.T) {
	r := newRig(t, "domains: [{name: d, descriptors: [{key: user, value: eve, limit: 0/s}, {key: user, limit: 5/s}]}]", nil)
	require.Equal(t, over, r.ask(1, descriptor("user=eve")).OverallCode)
	require.Equal(t, under, r.ask(1, descriptor("user=ann")).OverallCode)
}
