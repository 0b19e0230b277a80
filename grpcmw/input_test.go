package grpcmw_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/grpcmw/early"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// Whatever clients put into metadata: an answer, no panic, nothing echoed.
func TestS2_HostileMetadata(t *testing.T) {
	const canary = "canary-7f3a"
	for _, row := range []struct{ name, key, value string }{
		{"64 KiB", "x-api-key", strings.Repeat(canary, 64<<10/len(canary))},
		{"64 KiB of binary", "x-api-key-bin", canary + strings.Repeat("\x00\xff", 32<<10)},
		{"not UTF-8", "x-api-key-bin", canary + "\xff\xfe\xc3\x28"},
		{"looks like a tag", "x-api-key", "~secret:" + canary},
		{"looks like a kind", "x-api-key", "~" + canary + ":1"},
		{"looks like a method", "x-api-key", "/" + canary + "/x"},
		{"plain", "x-api-key", canary},
	} {
		t.Run(row.name, func(t *testing.T) {
			bucket := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
			raw := func(ctx context.Context, method string) (string, error) {
				return strings.Join(metadata.ValueFromIncomingContext(ctx, row.key), ""), nil
			}
			for name, key := range map[string]keyfunc.RPC{"keyfunc": rpckey.Metadata(row.key), "raw": raw} {
				opts := append(grpcmw.ServerOptions(bucket, key), grpc.InTapHandle(early.TapHandle(always(algo.Decision{Allowed: true, Limit: 1, Remaining: 1}), key)))
				c := client(t, &service{}, opts...)
				ctx := metadata.AppendToOutgoingContext(t.Context(), row.key, row.value)
				call(ctx, c)
				header, trailer, err := call(ctx, c)
				require.Equal(t, codes.ResourceExhausted, status.Code(err), name)
				encoded, _ := proto.Marshal(status.Convert(err).Proto())
				require.NotContains(t, string(encoded), canary)
				require.NotContains(t, header, row.key)
				require.NotContains(t, trailer, row.key)
			}
		})
	}
}

// The answers to all keys and methods there can be are a handful: nothing in
// them comes from the client.
func TestS2_AnswersAreAClosedSet(t *testing.T) {
	seen := make(map[string]bool)
	answer := func(t require.TestingT, key, method string) {
		i := grpcmw.UnaryServerInterceptor(always(quotaFor(time.Second)), named(key))
		_, err := i(bareContext, nil, &grpc.UnaryServerInfo{FullMethod: method}, bareHandler)
		seen[withoutTime(t, err)] = true
		_, err = early.TapHandle(always(quotaFor(time.Second)), named(key))(bareContext, &tap.Info{FullMethodName: method})
		seen[withoutTime(t, err)] = true
	}
	for _, key := range []string{"", "alice", "203.0.113.7"} {
		answer(t, key, "/a.B/C")
	}
	require.Len(t, seen, 3, "one for each class of key")
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.OneOf(rapid.String(), rapid.StringMatching(`~?[a-z]{0,6}[:#/]?.*`), bytesAsString()).Draw(t, "key")
		answer(t, key, rapid.OneOf(rapid.String(), bytesAsString()).Draw(t, "method"))
	})
	require.LessOrEqual(t, len(seen), 8)
}

func bytesAsString() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })
}

// withoutTime is the encoded status without RetryInfo, which has jitter.
func withoutTime(t require.TestingT, err error) string {
	p := status.Convert(err).Proto()
	require.Len(t, p.Details, 3)
	require.True(t, p.Details[2].MessageIs(&errdetails.RetryInfo{}))
	p.Details = p.Details[:2]
	encoded, encodeErr := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	require.NoError(t, encodeErr)
	return string(encoded)
}

// The class of a key, as QuotaFailure names it.
func TestClasses(t *testing.T) {
	for key, class := range map[string]string{
		"": "global", "~missing": "unidentified",
		"203.0.113.7": "address", "2001:db8::/64": "address", "~unix": "address", "local": "caller", "~hop:10.0.0.1": "address",
		"/a.B/C":            "method",
		"~uri:spiffe://x/y": "certificate", "~dns#0123": "certificate", "~email:a": "certificate", "~ip:1.2.3.4": "certificate",
		"~secret:0123": "secret", "~join/1:a/1:b": "combined",
		"alice": "caller", "~value:203.0.113.7": "caller", "~value#0123": "caller", "~": "caller", "~x": "caller", "~x:y": "caller",
		"abc": "caller", "/": "method", "\xff": "caller", "a.B": "caller",
	} {
		err := intercept(t.Context(), grpcmw.UnaryServerInterceptor(always(never), named(key)))
		require.Equal(t, class, detailsOf(t, err).quota.Violations[0].Subject, key)
	}
}

// A limiter may answer anything; the interceptors do not panic.
func TestS3_HostileLimiter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, 1, -1 << 63, 1<<63 - 1}))
		duration := func(name string) time.Duration { return time.Duration(number.Draw(t, name)) }
		d := algo.Decision{
			Allowed: rapid.Bool().Draw(t, "allowed"), Reason: algo.Reason(rapid.Uint8().Draw(t, "reason")),
			Source: algo.Source(rapid.Uint8().Draw(t, "source")), Limit: number.Draw(t, "limit"),
			Remaining: number.Draw(t, "remaining"), RetryAfter: duration("retry"), NextAfter: duration("next"),
			ResetAfter: duration("reset"),
		}
		i := grpcmw.UnaryServerInterceptor(always(d), rpckey.Global(), grpcmw.WithRateTrailers())
		r := new(transport)
		ctx := grpc.NewContextWithServerTransportStream(bareContext, r)
		if err := intercept(ctx, i); err != nil {
			r.pushed(t)
		}
		early.TapHandle(always(d), rpckey.Global())(ctx, &tap.Info{FullMethodName: "/a.B/C"})
	})
}

// A method without a name, or with slashes everywhere, is a method.
func TestS3_HostileMethods(t *testing.T) {
	for _, method := range []string{"", "/", "//", "a", "/a", "/a/", strings.Repeat("/", 64<<10), "\xff\x00"} {
		l := &script{}
		i := grpcmw.UnaryServerInterceptor(l, rpckey.FullMethod(), grpcmw.WithExempt("/a.B/*", "/a.B/C"))
		_, err := i(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: method}, bareHandler)
		require.NoError(t, err)
		require.Equal(t, []string{"~missing"}, l.asked())
	}
}

var bareContext = context.Background()
