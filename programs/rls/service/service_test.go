package service_test

import (
	"math"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/sluice-go/sluice/algo/telemetry"
)

// The lookup is the same as in envoyproxy/ratelimit.
func TestLookup(t *testing.T) {
	r := newRig(t, `
domains:
  - name: d
    descriptors:
      - {key: path, value: /a, name: exact, limit: 1/s}
      - {key: path, value: "/a*", name: prefix, limit: 1/s}
      - {key: path, value: "/ab*", name: longer, limit: 1/s}
      - {key: path, value: "/*/action", name: middle, limit: 1/s}
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
		{"prefix", []string{"path=/abc"}},
		{"middle", []string{"path=/x/action"}},
		{"any", []string{"path=/x"}}, // and /ab* never: the first pattern that fits counts
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
	require.Equal(t, uint32(73), resp.Statuses[0].LimitRemaining, "the number of the descriptor overrides the request")
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

// The names of the fields, for all domains and for one.
func TestHeaderNames(t *testing.T) {
	r := newRig(t, `
domain_headers: {limit: ratelimit-limit, remaining: ratelimit-remaining, reset: ratelimit-reset}
domains:
  - name: d
    descriptors:
      - {key: a, limit: fixed-window 100/day}
      - {key: b, limit: 5/s}
  - name: own
    headers: {remaining: x-left}
    descriptors: [{key: a, limit: fixed-window 100/day}]
`, nil)
	require.Equal(t, map[string]string{"ratelimit-limit": "5", "ratelimit-remaining": "1", "ratelimit-reset": "1"},
		headers(r.ask(4, descriptor("a=1"), descriptor("b=1"))))
	require.Equal(t, map[string]string{"ratelimit-limit": "5", "ratelimit-remaining": "1", "ratelimit-reset": "1"},
		headers(r.ask(2, descriptor("a=1"), descriptor("b=1"))), "denied")
	require.Empty(t, headers(r.ask(1, descriptor("unknown=1"))))
	own := &rls.RateLimitRequest{Domain: "own", HitsAddend: 3, Descriptors: []*ratelimit.RateLimitDescriptor{descriptor("a=1")}}
	require.Equal(t, map[string]string{"x-left": "97"}, headers(r.send(own)))
}

// The content of a status and of the headers.
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
