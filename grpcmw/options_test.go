package grpcmw_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// constructors makes each kind of interceptor.
var constructors = map[string]func(algo.Limiter, keyfunc.RPC, ...grpcmw.Option){
	"UnaryServerInterceptor": func(l algo.Limiter, k keyfunc.RPC, o ...grpcmw.Option) {
		grpcmw.UnaryServerInterceptor(l, k, o...)
	},
	"StreamServerInterceptor": func(l algo.Limiter, k keyfunc.RPC, o ...grpcmw.Option) {
		grpcmw.StreamServerInterceptor(l, k, o...)
	},
	"ServerOptions": func(l algo.Limiter, k keyfunc.RPC, o ...grpcmw.Option) { grpcmw.ServerOptions(l, k, o...) },
}

type limiterFunc func(context.Context, string, int64) (algo.Lease, error)

func (f limiterFunc) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	return f(ctx, key, n)
}

// wrapped is a limiter that is not a pointer.
type wrapped struct{ algo.Limiter }

// Mistakes are seen when a server is put together, never on a call.
func TestWiringMistakes(t *testing.T) {
	for name, build := range constructors {
		t.Run(name, func(t *testing.T) {
			key := rpckey.Global()
			prefix := "grpcmw: " + name + ": "
			for _, nothing := range []algo.Limiter{nil, (*algo.RateLimiter)(nil), limiterFunc(nil)} {
				require.PanicsWithValue(t, prefix+"the limiter is nil", func() { build(nothing, key) })
			}
			require.PanicsWithValue(t, prefix+"the key function is nil; rpckey.Global gives all calls one limit", func() { build(plenty(), nil) })
			require.PanicsWithValue(t, prefix+"the zero Option is not an option", func() { build(plenty(), key, grpcmw.Option{}) })
			require.NotPanics(t, func() { build(plenty(), key) })
			require.NotPanics(t, func() { build(limiterFunc(plenty().Acquire), key) })
			require.NotPanics(t, func() { build(wrapped{plenty()}, key) })
		})
	}
}

func TestOptionValues(t *testing.T) {
	build := func(o grpcmw.Option) func() {
		return func() { grpcmw.ServerOptions(plenty(), rpckey.Global(), o) }
	}
	for want, o := range map[string]grpcmw.Option{
		`WithName: "" has 0 bytes, want 1 to 64`:                                                  grpcmw.WithName(""),
		`WithName: "a b" has characters other than letters, digits, dot, underscore and hyphen`:   grpcmw.WithName("a b"),
		`WithName: "a\xff" has characters other than letters, digits, dot, underscore and hyphen`: grpcmw.WithName("a\xff"),
		"WithCost: is nil":     grpcmw.WithCost(nil),
		"WithObserver: is nil": grpcmw.WithObserver(nil),
		"WithStreamMode: is 0, want OnOpen, PerRecv, PerSend or several of them":                grpcmw.WithStreamMode(0),
		"WithStreamMode: is 8, want OnOpen, PerRecv, PerSend or several of them":                grpcmw.WithStreamMode(8),
		"WithBackPressure: is 0s, want above 0":                                                 grpcmw.WithBackPressure(0),
		`WithExempt: "a.B/C" is neither "/package.Service/Method" nor "/package.Service/*"`:     grpcmw.WithExempt("/x.Y/Z", "a.B/C"),
		`WithExempt: "" is neither "/package.Service/Method" nor "/package.Service/*"`:          grpcmw.WithExempt(""),
		`WithExempt: "/" is neither "/package.Service/Method" nor "/package.Service/*"`:         grpcmw.WithExempt("/"),
		`WithExempt: "//" is neither "/package.Service/Method" nor "/package.Service/*"`:        grpcmw.WithExempt("//"),
		`WithExempt: "/a.B/Get*" is neither "/package.Service/Method" nor "/package.Service/*"`: grpcmw.WithExempt("/a.B/Get*"),
		`WithExempt: "/a.*/Get" is neither "/package.Service/Method" nor "/package.Service/*"`:  grpcmw.WithExempt("/a.*/Get"),
		`WithExempt: "/a.B/**" is neither "/package.Service/Method" nor "/package.Service/*"`:   grpcmw.WithExempt("/a.B/**"),
		`WithExempt: "/*/*" is neither "/package.Service/Method" nor "/package.Service/*"`:      grpcmw.WithExempt("/*/*"),
		"WithBackPressure: concerns messages, and WithStreamMode charges none":                  grpcmw.WithBackPressure(time.Second),
		`WithExempt: "/a/b/c" is neither "/package.Service/Method" nor "/package.Service/*"`:    grpcmw.WithExempt("/a/b/c"),
	} {
		require.PanicsWithValue(t, "grpcmw: ServerOptions: "+want, build(o))
	}
	require.NotPanics(t, build(grpcmw.WithName(strings.Repeat("a", 64))))
	require.Panics(t, build(grpcmw.WithName(strings.Repeat("a", 65))))
}

// An option that cannot work somewhere is an error there, never ignored.
func TestOptionsThatDoNotBelong(t *testing.T) {
	cost := grpcmw.WithCost(func(context.Context, string, any) int64 { return 1 })
	mode := grpcmw.WithStreamMode(grpcmw.PerRecv)
	pressure := grpcmw.WithBackPressure(algo.Forever) // goes with mode
	lease := grpcmw.WithLeaseInContext()
	rate := grpcmw.WithRateTrailers()
	closed := grpcmw.WithFailOpen()
	everywhere := []grpcmw.Option{
		grpcmw.WithName("x"), grpcmw.WithExempt("/a.B/C"),
		grpcmw.WithMissingKey(grpcmw.Skip), grpcmw.WithObserver(func(telemetry.Event) {}),
	}
	all := []grpcmw.Option{cost, mode, pressure, lease, rate, closed}
	for constructor, takes := range map[string][]bool{
		//                         cost  mode   press. lease  res.   rate   closed
		"UnaryServerInterceptor":  {true, false, false, true, true, true},
		"StreamServerInterceptor": {true, true, true, true, true, true},
		"ServerOptions":           {true, true, true, true, true, true},
	} {
		build := func(o grpcmw.Option) func() {
			return func() { constructors[constructor](plenty(), rpckey.Global(), o) }
		}
		for n, o := range all {
			if takes[n] && n == 2 {
				require.NotPanics(t, func() { constructors[constructor](plenty(), rpckey.Global(), o, mode) }, constructor)
			} else if takes[n] {
				require.NotPanics(t, build(o), "%s %d", constructor, n)
			} else {
				require.Panics(t, build(o), "%s %d", constructor, n)
			}
		}
		for n, o := range everywhere {
			require.NotPanics(t, build(o), "%s %d", constructor, n)
		}
	}
	require.PanicsWithValue(t, "grpcmw: UnaryServerInterceptor: does not take the option WithStreamMode, only "+
		"WithName, WithExempt, WithSkip, WithMissingKey, WithObserver, WithCost, WithFailOpen, "+
		"WithRefundIf, WithDenied, WithLeaseInContext, WithRateTrailers",
		func() { grpcmw.UnaryServerInterceptor(plenty(), rpckey.Global(), mode) })
}
