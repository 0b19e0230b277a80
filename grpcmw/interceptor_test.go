package grpcmw_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// The event contains the answer that the client of a real server receives.
func TestEventTellsWhatIsSent(t *testing.T) {
	quota := algo.Decision{Reason: algo.Quota, Limit: 1, RetryAfter: 10 * time.Second}
	for _, row := range []struct {
		name string
		l    algo.Limiter
		opts []grpcmw.Option
	}{
		{"admitted", always(algo.Decision{Allowed: true, Limit: 3, Remaining: 2}), nil},
		{"admitted, with trailers", algo.Must(algo.NewTokenBucket(algo.PerMinute(20))), []grpcmw.Option{grpcmw.WithRateTrailers()}},
		{"quota", always(quota), nil},
		{"never", always(never), nil},
		{"overload", always(algo.Decision{Reason: algo.Overload, Limit: 1}), nil},
		{"failed", failing(context.DeadlineExceeded), nil},
		{"on trial", algo.Shadow(always(quota)), []grpcmw.Option{grpcmw.WithRateTrailers()}},
	} {
		for kind, ask := range calls {
			events := make(chan telemetry.Event, 1)
			opts := append(slices.Clone(row.opts), grpcmw.WithName("p"), grpcmw.WithObserver(func(e telemetry.Event) { events <- e }))
			c := client(t, &service{duplex: echo}, grpcmw.ServerOptions(row.l, rpckey.Global(), opts...)...)
			_, trailer, err := ask(t.Context(), c)
			e, name := <-events, row.name+", "+kind
			require.Equal(t, first(trailer["ratelimit-policy"]), e.Sent.Policy, name)
			require.Equal(t, first(trailer["ratelimit"]), e.Sent.Limit, name)
			pushback, _ := strconv.Atoi(first(trailer["grpc-retry-pushback-ms"]))
			require.EqualValues(t, pushback, e.Sent.Pushback, name)
			require.Equal(t, detailsOf(t, err).retry.GetRetryDelay().AsDuration(), e.Sent.RetryAfter, name)
			require.Equal(t, telemetry.GRPC, e.Transport)
			require.Equal(t, row.name == "on trial", e.Decision.Trial != algo.Admitted)
			require.Equal(t, row.name == "quota", e.Sent.RetryAfter >= quota.RetryAfter, name)
			require.Equal(t, row.name == "admitted, with trailers", e.Sent.Limit != "", name)
		}
	}
}

// calls are the two kinds of call.
var calls = map[string]func(context.Context, testpb.TestServiceClient) (metadata.MD, metadata.MD, error){"unary": call, "stream": callStream}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// The messages of a stream have no trailers of their own.
func TestEventWhereLessIsSent(t *testing.T) {
	var e telemetry.Event
	observe := grpcmw.WithObserver(func(ev telemetry.Event) { e = ev })
	stream := grpcmw.StreamServerInterceptor(plenty(), rpckey.Global(), observe,
		grpcmw.WithStreamMode(grpcmw.PerSend), grpcmw.WithRateTrailers())
	require.NoError(t, run(t.Context(), stream, func(ss grpc.ServerStream) error { return ss.SendMsg(nil) }))
	require.Equal(t, telemetry.Allowed, e.Result)
	require.Equal(t, telemetry.Sent{}, e.Sent)
}

// The wait is the Delay.
func TestEventTellsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []telemetry.Event
		observe := grpcmw.WithObserver(func(e telemetry.Event) { seen = append(seen, e) })
		start := time.Now()
		pacer := algo.Must(algo.NewPacer(algo.Every(10*time.Second), algo.MaxWait(time.Minute)))
		server := grpcmw.UnaryServerInterceptor(pacer, rpckey.Global(), observe)
		require.NoError(t, intercept(t.Context(), server))
		require.NoError(t, intercept(t.Context(), server))
		var waits []time.Duration
		for _, e := range seen {
			waits = append(waits, e.Waited)
		}
		require.Equal(t, []time.Duration{0, 10 * time.Second}, waits)
		require.Equal(t, start.Add(10*time.Second), seen[1].At)
	})
}

// BenchmarkObserver measures an observer that does nothing.
func BenchmarkObserver(b *testing.B) {
	ctx := callContext()
	spent := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	spent.Allow("192.0.2.7", 1)
	observe := grpcmw.WithObserver(func(telemetry.Event) {})
	for _, row := range []struct {
		name      string
		intercept grpc.UnaryServerInterceptor
	}{
		{"admitted/unset", grpcmw.UnaryServerInterceptor(plenty(), rpckey.PeerIP())},
		{"admitted/set", grpcmw.UnaryServerInterceptor(plenty(), rpckey.PeerIP(), observe)},
		{"denied/unset", grpcmw.UnaryServerInterceptor(spent, rpckey.PeerIP())},
		{"denied/set", grpcmw.UnaryServerInterceptor(spent, rpckey.PeerIP(), observe)},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = row.intercept(ctx, nil, callInfo, bareHandler)
			}
		})
	}
}

func TestMissingKey(t *testing.T) {
	noKey := keyless(errors.Join(keyfunc.ErrNoKey, errors.New("secret")))
	broken := keyless(errors.New("secret"))
	for _, row := range []struct {
		name   string
		key    keyfunc.RPC
		opts   []grpcmw.Option
		code   codes.Code
		asked  []string
		result telemetry.Result
	}{
		{"default", noKey, nil, codes.OK, []string{"~missing"}, telemetry.Allowed},
		{"Shared", noKey, []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.Shared)}, codes.OK, []string{"~missing"}, telemetry.Allowed},
		{"Deny", noKey, []grpcmw.Option{grpcmw.WithMissingKey(codes.Unauthenticated)}, codes.Unauthenticated, nil, telemetry.Denied},
		{"Skip", noKey, []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.Skip)}, codes.OK, nil, noResult},
		{"another error", broken, nil, codes.Unavailable, nil, telemetry.FailedClosed},
		{"another error, Skip", broken, []grpcmw.Option{grpcmw.WithMissingKey(grpcmw.Skip)}, codes.Unavailable, nil, telemetry.FailedClosed},
		{"another error, FailOpen", broken, []grpcmw.Option{grpcmw.WithFailOpen()}, codes.OK, nil, telemetry.FailedOpen},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, seen := &script{}, noResult
			observer := grpcmw.WithObserver(func(e telemetry.Event) { seen = e.Result })
			opts := append([]grpcmw.Option{observer}, row.opts...)
			err := intercept(t.Context(), grpcmw.UnaryServerInterceptor(l, row.key, opts...))
			require.Equal(t, row.code, status.Code(err))
			require.Equal(t, row.asked, l.asked())
			require.Equal(t, row.result, seen)
			if err != nil {
				require.NotContains(t, err.Error(), "secret")
			}
		})
	}
}

const noResult = telemetry.Result(99)

func TestLimiterErrors(t *testing.T) {
	secret := errors.New("dial tcp 10.0.0.1:6379: secret")
	for _, row := range []struct {
		name   string
		err    error
		cost   int64
		opts   []grpcmw.Option
		code   codes.Code
		result telemetry.Result
		final  bool // the client is events not to try again
	}{
		{"default", secret, 1, nil, codes.Unavailable, telemetry.FailedClosed, false},
		{"FailClosed", secret, 1, []grpcmw.Option{}, codes.Unavailable, telemetry.FailedClosed, false},
		{"FailOpen", secret, 1, []grpcmw.Option{grpcmw.WithFailOpen()}, codes.OK, telemetry.FailedOpen, false},
		{"negative cost", nil, -1, nil, codes.Unavailable, telemetry.FailedClosed, true},
		{"negative cost, FailOpen", nil, -1 << 63, []grpcmw.Option{grpcmw.WithFailOpen()}, codes.Unavailable, telemetry.FailedClosed, true},
		{"ErrWait, FailOpen", algo.ErrWait, 1, []grpcmw.Option{grpcmw.WithFailOpen()}, codes.Unavailable, telemetry.FailedClosed, false},
		{"ErrCost, FailOpen", algo.ErrCost, 1, []grpcmw.Option{grpcmw.WithFailOpen()}, codes.Unavailable, telemetry.FailedClosed, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			var l algo.Limiter = failing(row.err)
			if row.err == nil {
				l = &script{}
			}
			var seen telemetry.Event
			opts := append([]grpcmw.Option{
				grpcmw.WithCost(func(context.Context, string, any) int64 { return row.cost }),
				grpcmw.WithObserver(func(e telemetry.Event) { seen = e }),
			}, row.opts...)
			c := client(t, &service{}, grpcmw.ServerOptions(l, rpckey.Global(), opts...)...)
			_, trailer, err := call(t.Context(), c)
			require.Equal(t, row.code, status.Code(err))
			require.Equal(t, row.result, seen.Result)
			require.Error(t, seen.Err)
			require.Equal(t, row.cost, seen.Cost)
			if err == nil {
				return
			}
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "cost")
			require.Len(t, trailer[pushback], 1)
			require.Equal(t, row.final, trailer[pushback][0] == "-1")
		})
	}
}

// An operator reads why calls cannot be decided, once in a while and not for
// each; the clients never do.
func TestS2_FailuresAreLogged(t *testing.T) {
	var out bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&out)
	for name, policy := range map[string][]grpcmw.Option{"closed": nil, "open": {grpcmw.WithFailOpen()}} {
		grpcmw.ResetWarnings()
		out.Reset()
		i := grpcmw.UnaryServerInterceptor(failing(errors.New("dial: \"refused\"\nby peer")), rpckey.Global(),
			append(policy, grpcmw.WithName(name))...)
		for range 10 {
			intercept(t.Context(), i)
		}
		require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
		require.Contains(t, out.String(), `code=grpcmw.undecided policy=`+name+` error="dial: \"refused\"\nby peer"`)
	}
}

// TestMisconfigurationIsLogged: calls of which none has a key, and a limit on trial whose
// decisions nothing observes, are logged once.
func TestMisconfigurationIsLogged(t *testing.T) {
	for want, wire := range map[string]func() grpc.UnaryServerInterceptor{
		"code=keyfunc.no_key policy=users": func() grpc.UnaryServerInterceptor {
			return grpcmw.UnaryServerInterceptor(algo.Must(algo.NewTokenBucket(algo.PerHour(1000))), keyless(keyfunc.ErrNoKey), grpcmw.WithName("users"))
		},
		"code=algo.trial_unobserved policy=users": func() grpc.UnaryServerInterceptor {
			return grpcmw.UnaryServerInterceptor(algo.Shadow(algo.Must(algo.NewTokenBucket(algo.PerHour(1)))), rpckey.Global(), grpcmw.WithName("users"))
		},
	} {
		grpcmw.ResetWarnings()
		var out bytes.Buffer
		before := log.Writer()
		log.SetOutput(&out)
		i := wire()
		for range 1000 {
			intercept(t.Context(), i)
		}
		log.SetOutput(before)
		require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
		require.Contains(t, out.String(), want)
	}
}
