package admission_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
)

// ends keeps the outcomes of the work that it admits.
type ends struct{ outcomes []algo.Outcome }

func (e *ends) Acquire(context.Context, string, int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision{Allowed: true}, e, algo.Handle{}), nil
}
func (e *ends) Release(_ algo.Handle, o algo.Outcome) { e.outcomes = append(e.outcomes, o) }
func (e *ends) Settle(algo.Handle, int64)             {}

// TestEndsOfWork: what the end of a request says about the work is the same over HTTP, over gRPC,
// and over gRPC on net/http, also of denials by a limit further in whose mark is lost.
func TestEndsOfWork(t *testing.T) {
	const ok, fault, request = algo.Succeeded, algo.Failed, algo.Failed | algo.Untimed
	for name, row := range map[string]struct {
		status int
		code   codes.Code
		want   algo.Outcome
	}{
		"ok":                  {200, codes.OK, ok},
		"invalid":             {400, codes.InvalidArgument, request},
		"precondition":        {412, codes.FailedPrecondition, request},
		"unauthenticated":     {401, codes.Unauthenticated, request},
		"forbidden":           {403, codes.PermissionDenied, request},
		"not found":           {404, codes.NotFound, request},
		"exists":              {409, codes.AlreadyExists, request},
		"conflict":            {409, codes.Aborted, request},
		"out of range":        {416, codes.OutOfRange, request},
		"a quota of its own":  {429, codes.ResourceExhausted, request},
		"gave up":             {499, codes.Canceled, request},
		"not implemented":     {501, codes.Unimplemented, request},
		"error":               {500, codes.Internal, fault},
		"unknown error":       {500, codes.Unknown, fault},
		"lost data":           {500, codes.DataLoss, fault},
		"lacks capacity":      {503, codes.Unavailable, fault},
		"upstream timed out":  {504, codes.DeadlineExceeded, fault},
		"bad gateway":         {502, codes.Unavailable, fault},
		"http version":        {505, codes.Internal, fault},
		"insufficient memory": {507, codes.Internal, fault},
	} {
		var seen ends
		serveHTTP(&seen, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(row.status) })
		serveRPC(&seen, func(context.Context, any) (any, error) { return nil, status.Error(row.code, "") })
		serveHTTP(&seen, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(int(row.code)))
		})
		require.Equal(t, []algo.Outcome{row.want, row.want, row.want}, seen.outcomes, name)
	}
	var seen ends
	serveHTTP(&seen, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	serveRPC(&seen, func(context.Context, any) (any, error) { panic("handler") })
	require.Equal(t, []algo.Outcome{fault, fault}, seen.outcomes, "panics")

	seen = ends{}
	inner := says{d: denies(algo.Quota, 1)}
	serveHTTP(&seen, func(w http.ResponseWriter, r *http.Request) {
		hidden := struct{ http.ResponseWriter }{w} // no Unwrap
		httpmw.Limit(inner, httpKey)(http.NotFoundHandler()).ServeHTTP(hidden, r)
	})
	serveRPC(&seen, func(ctx context.Context, req any) (any, error) {
		_, err := grpcmw.UnaryServerInterceptor(inner, rpcKey)(ctx, req, rpcInfo, nil)
		return nil, status.Error(status.Code(err), "rebuilt")
	})
	require.Equal(t, []algo.Outcome{request, request}, seen.outcomes, "denied further in, the mark is lost")
}

var rpcInfo = &grpc.UnaryServerInfo{FullMethod: "/s/m"}

func httpKey(*http.Request) (string, error)          { return "k", nil }
func rpcKey(context.Context, string) (string, error) { return "k", nil }

func serveHTTP(l algo.Limiter, h http.HandlerFunc) {
	defer func() { _ = recover() }()
	httpmw.Limit(l, httpKey)(h).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}

func serveRPC(l algo.Limiter, h grpc.UnaryHandler) {
	defer func() { _ = recover() }()
	_, _ = grpcmw.UnaryServerInterceptor(l, rpcKey)(context.Background(), nil, rpcInfo, h)
}
