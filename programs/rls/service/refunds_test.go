package service_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/rls/service"
)

// refunds is a service whose limits take a second to give units back.
type refunds struct {
	service *service.Service
	log     bytes.Buffer

	mu     sync.Mutex
	given  int      // calls that have ended
	stacks []string // of the calls
}

type slow struct {
	algo.Limiter
	of *refunds
}

// Refund fails, or panics, for a key that says so.
func (s slow) Refund(_ context.Context, key string, n int64) (int64, error) {
	if n < 0 {
		return 0, algo.ErrCost
	}
	time.Sleep(time.Second)
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.given++
	s.of.stacks = append(s.of.stacks, string(debug.Stack()))
	switch {
	case strings.Contains(key, "fails"):
		return 0, errors.New("no reply")
	case strings.Contains(key, "panics"):
		panic("planted")
	}
	return n, nil
}

func newRefunds(t *testing.T) *refunds {
	f, err := config.Parse("f", []byte(refundFile))
	require.NoError(t, err)
	r := &refunds{}
	r.service, err = service.New(f, service.Options{
		Log:  slog.New(slog.NewTextHandler(&r.log, nil)),
		Wrap: func(_ string, l algo.Limiter) algo.Limiter { return slow{l, r} },
	})
	require.NoError(t, err)
	return r
}

func (r *refunds) ask(t *testing.T, ds ...*ratelimit.RateLimitDescriptor) {
	resp, err := r.service.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "d", Descriptors: ds})
	require.NoError(t, err)
	require.Equal(t, under, resp.OverallCode)
}

func TestNegativeHitsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := newRefunds(t), time.Now()
		r.ask(t, back(1, "bucket=1"), descriptor("bucket=2"), back(1, "bucket=3"), back(1, "window=1"), back(0, "window=2"))
		require.Equal(t, time.Second, time.Since(began), "each takes a second")
		require.Equal(t, 3, r.given)
	})
}

// One descriptor alone is given back by the goroutine of the request.
func TestOneNegativeHit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefunds(t)
		r.ask(t, back(1, "bucket=1"), descriptor("bucket=2"))
		require.Len(t, r.stacks, 1)
		require.Contains(t, r.stacks[0], "ShouldRateLimit")
	})
}

func TestNegativeHitsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefunds(t)
		r.ask(t, back(1, "bucket=fails"), back(1, "bucket=1"), back(1, "window=fails"))
		require.Equal(t, 3, r.given)
		for text, logged := range map[string]bool{"descriptors[0]: is_negative_hits: no reply": true, "descriptors[1]": false, "descriptors[2]: is_negative_hits: no reply": true} {
			require.Equal(t, logged, strings.Contains(r.log.String(), text), text)
		}
	})
}

// A panic comes to the goroutine of the request, where net/http or an interceptor may recover it.
func TestNegativeHitsThatPanic(t *testing.T) {
	for _, ds := range [][]*ratelimit.RateLimitDescriptor{
		{back(1, "bucket=panics")},
		{back(1, "bucket=1"), back(1, "bucket=panics"), back(1, "window=1")},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRefunds(t)
			defer func() {
				require.Contains(t, recover(), "planted")
				require.Equal(t, len(ds), r.given, "no call goes on after the request")
			}()
			r.ask(t, ds...)
		})
	}
}

// If one limit gives nothing back, none does.
func TestNegativeHitsUnsupported(t *testing.T) {
	here, onRedis := newRig(t, refundFile, nil), newRig(t, refundFile, openStore(t, redistest.Start(t)))
	f := here.parse(refundFile)
	switched, err := service.New(f, service.Options{Log: slog.New(slog.DiscardHandler), Wrap: func(_ string, l algo.Limiter) algo.Limiter { return admin.Control(l) }})
	require.NoError(t, err)
	for s, text := range map[*service.Service]string{
		here.service:    "algo: sliding log: Refund: unsupported operation",
		onRedis.service: "distributed: sliding log \"1:d3:log.sliding-log\": only buckets, pacers and fixed windows give back units without a lease: unsupported operation",
		switched:        "algo: sliding log: Refund: unsupported operation",
	} {
		ask := func(ds ...*ratelimit.RateLimitDescriptor) (*rls.RateLimitResponse, error) {
			return s.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: "d", Descriptors: ds})
		}
		for _, entry := range []string{"bucket=1", "window=1", "trial=1"} {
			resp, err := ask(descriptor(entry))
			require.NoError(t, err)
			require.Equal(t, uint32(9), resp.Statuses[0].LimitRemaining)
			_, err = ask(back(1, entry), back(1, "log=1"), back(1, entry))
			require.Equal(t, codes.InvalidArgument, status.Code(err))
			require.Equal(t, "descriptors[1]: is_negative_hits: "+text, status.Convert(err).Message())
			resp, err = ask(back(0, entry))
			require.NoError(t, err)
			require.Equal(t, uint32(9), resp.Statuses[0].LimitRemaining, "nothing was given back")
		}
	}
}

// Units of a descriptor are given back before units of the same descriptor are charged, in any
// order; and twice, if they were spent.
func TestNegativeHitsBesideTheSameDescriptor(t *testing.T) {
	for name, r := range map[string]*rig{
		"here": newRig(t, refundFile, nil), "on Redis": newRig(t, refundFile, openStore(t, redistest.Start(t))),
	} {
		for _, entry := range []string{"bucket=1", "window=1", "trial=1"} {
			require.Equal(t, uint32(0), r.ask(10, descriptor(entry)).Statuses[0].LimitRemaining)
			for _, test := range []struct {
				request []*ratelimit.RateLimitDescriptor
				left    uint32
			}{
				{[]*ratelimit.RateLimitDescriptor{back(5, entry), descriptor(entry)}, 2},
				{[]*ratelimit.RateLimitDescriptor{descriptor(entry), back(5, entry)}, 4},
				{[]*ratelimit.RateLimitDescriptor{back(1, entry), back(2, entry)}, 7},
				{[]*ratelimit.RateLimitDescriptor{back(2, entry), back(2, entry)}, 10},
			} {
				resp := r.ask(3, test.request...)
				require.Equal(t, under, resp.OverallCode, "%s: %s", name, entry)
				require.Equal(t, test.left, r.ask(0, back(0, entry)).Statuses[0].LimitRemaining, "%s: %s", name, entry)
			}
		}
	}
}

// The request is decided, and each descriptor's units are given back or not: a limit in the
// process asks for no context.
func TestNegativeHitsAfterTheContext(t *testing.T) {
	for name, test := range map[string]struct {
		r    *rig
		left []uint32
	}{
		"here":     {newRig(t, refundFile, nil), []uint32{5}},
		"on Redis": {newRig(t, refundFile, openStore(t, redistest.Start(t))), []uint32{2, 5}},
	} {
		entries := []string{"bucket=1", "window=1", "trial=1"}
		var ds []*ratelimit.RateLimitDescriptor
		for _, entry := range entries {
			require.Equal(t, uint32(2), test.r.ask(8, descriptor(entry)).Statuses[0].LimitRemaining)
			ds = append(ds, back(3, entry))
		}
		ended, end := context.WithCancel(t.Context())
		end()
		resp, err := test.r.service.ShouldRateLimit(ended, &rls.RateLimitRequest{Domain: "d", Descriptors: ds})
		require.NoError(t, err, name)
		require.Len(t, resp.Statuses, len(entries))
		for _, entry := range entries {
			require.Contains(t, test.left, test.r.ask(0, back(0, entry)).Statuses[0].LimitRemaining, "%s: %s", name, entry)
		}
	}
}
