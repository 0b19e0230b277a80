package admission_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
)

var rpcInfo = &grpc.UnaryServerInfo{FullMethod: "/s/m"}

func httpKey(*http.Request) (string, error)          { return "k", nil }
func rpcKey(context.Context, string) (string, error) { return "k", nil }

// wire is a server of net/http whose handler changes.
type wire struct {
	*httptest.Server
	protocol string
	h        http.Handler
}

// newWire returns what runs an end of work over a protocol.
func newWire(t *testing.T, protocol string) func(e end, l algo.Limiter, refunds bool) {
	if protocol == overRPC {
		return newRPCWire(t).run
	}
	w := &wire{protocol: protocol}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.h.ServeHTTP(rw, r) }))
	if w.EnableHTTP2 = protocol == "HTTP/2" || protocol == onHTTP; w.EnableHTTP2 {
		w.StartTLS()
	} else {
		w.Start()
	}
	w.Client().Transport.(*http.Transport).DisableKeepAlives = !w.EnableHTTP2
	t.Cleanup(w.Close)
	return w.run
}

func (w *wire) run(e end, l algo.Limiter, refunds bool) {
	var opts []httpmw.Option
	if refunds {
		opts = append(opts, httpmw.WithRefundIf(func(int) bool { return true }))
	}
	begun, served := make(chan struct{}), make(chan struct{})
	limited := httpmw.Limit(l, httpKey, opts...)(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { e.overHTTP(w.protocol, begun, rw, r) }))
	w.h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		limited.ServeHTTP(w, r)
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, e.body(begun))
	switch {
	case e.client == leaves || e.client == shortTime && strings.HasPrefix(w.protocol, "HTTP"):
		go func() { <-begun; cancel() }()
	case e.client == shortTime && w.protocol == connect:
		r.Header.Set("Connect-Timeout-Ms", "20")
	case e.client == shortTime:
		r.Header.Set("Grpc-Timeout", "20m")
	}
	if resp, err := w.Client().Do(r); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	<-served
}

// body is the body of the request.
func (e end) body(begun chan struct{}) io.Reader {
	if e.client != cutsBody && e.client != slowBody {
		return strings.NewReader("body")
	}
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "bo")
		if e.client == slowBody {
			time.Sleep(150 * time.Millisecond)
			w.Close()
			return
		}
		<-begun
		w.CloseWithError(io.ErrUnexpectedEOF)
	}()
	return r
}

// overHTTP serves a request to its end.
func (e end) overHTTP(protocol string, begun chan struct{}, w http.ResponseWriter, r *http.Request) {
	if e.denied != "" {
		if e.denied == "lost" {
			w = struct{ http.ResponseWriter }{w} // no Unwrap
		}
		httpmw.Limit(says{d: denies(algo.Quota, 1)}, httpKey)(http.NotFoundHandler()).ServeHTTP(w, r)
		return
	}
	if e.serve != nil {
		e.serve(w, r)
		return
	}
	if e.client == cutsBody {
		close(begun)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	switch {
	case protocol == onHTTP:
		w.Header().Set("Content-Type", "application/grpc")
	case protocol == web:
		w.Header().Set("Content-Type", "application/grpc-web")
	case protocol == connect && e.sent > 0:
		w.Header().Set("Content-Type", "application/connect+json")
	case e.sent > 0:
		w.Header().Set("Content-Type", "text/event-stream")
	}
	for range e.sent {
		_, _ = io.WriteString(w, "message\n\n")
		_ = http.NewResponseController(w).Flush()
	}
	if e.client == leaves || e.client == shortTime && strings.HasPrefix(protocol, "HTTP") {
		close(begun)
		<-r.Context().Done()
	} else if e.client == shortTime {
		time.Sleep(25 * time.Millisecond)
	}
	if e.panics {
		panic(http.ErrAbortHandler)
	}
	e.answer(protocol, w)
}

// answer writes the status as the protocol has it.
func (e end) answer(protocol string, w http.ResponseWriter) {
	code := strconv.Itoa(int(e.code))
	switch {
	case protocol == onHTTP:
		w.WriteHeader(http.StatusOK)
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", code)
	case protocol == web && e.sent == 0:
		w.Header().Set("Grpc-Status", code)
		w.WriteHeader(http.StatusOK)
	case protocol == web:
		_, _ = w.Write(frame(0x80, "grpc-status: "+code))
	case protocol == connect && e.sent > 0:
		_, _ = w.Write(frame(2, fmt.Sprintf(`{"error":{"code":%q}}`, e.code)))
	case e.sent == 0:
		w.WriteHeader(e.status)
	case e.status >= 400:
		panic(http.ErrAbortHandler) // HTTP has no other way
	}
}

func frame(flags byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(text))), text...)
}

// rpcWire is a server of gRPC whose interceptors and service change.
type rpcWire struct {
	testpb.UnimplementedTestServiceServer
	calls  testpb.TestServiceClient
	e      end
	begun  chan struct{}
	unary  grpc.UnaryServerInterceptor
	stream grpc.StreamServerInterceptor
}

func newRPCWire(t *testing.T) *rpcWire {
	w, listener := &rpcWire{}, bufconn.Listen(1<<16)
	srv := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
		defer recovers(&err)
		return w.unary(ctx, req, info, next)
	}), grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
		defer recovers(&err)
		return w.stream(srv, ss, info, next)
	}))
	testpb.RegisterTestServiceServer(srv, w)
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(listener) })
	conn, err := grpc.NewClient("passthrough:///", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); srv.Stop(); serving.Wait() })
	w.calls = testpb.NewTestServiceClient(conn)
	return w
}

func recovers(err *error) {
	if recover() != nil {
		*err = status.Error(codes.Internal, "panic")
	}
}

func (w *rpcWire) run(e end, l algo.Limiter, refunds bool) {
	var opts []grpcmw.Option
	if refunds {
		opts = append(opts, grpcmw.WithRefundIf(func(codes.Code) bool { return true }))
	}
	w.e, w.begun = e, make(chan struct{})
	w.unary, w.stream = grpcmw.UnaryServerInterceptor(l, rpcKey, opts...), grpcmw.StreamServerInterceptor(l, rpcKey, opts...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if e.client == shortTime {
		ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
	}
	if e.client == leaves || e.client == cutsBody {
		go func() { <-w.begun; cancel() }()
	}
	if e.sent == 0 && e.client != cutsBody && e.client != slowBody {
		_, _ = w.calls.UnaryCall(ctx, &testpb.SimpleRequest{})
		return
	}
	ss, err := w.calls.FullDuplexCall(ctx)
	if err != nil {
		return
	}
	_ = ss.Send(&testpb.StreamingOutputCallRequest{})
	if e.client == slowBody {
		time.Sleep(150 * time.Millisecond)
	}
	if e.client != cutsBody {
		_ = ss.CloseSend()
	}
	for err == nil {
		_, err = ss.Recv()
	}
}

func (w *rpcWire) UnaryCall(ctx context.Context, req *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	if w.e.denied != "" {
		_, err := grpcmw.UnaryServerInterceptor(says{d: denies(algo.Quota, 1)}, rpcKey)(ctx, req, rpcInfo, nil)
		if w.e.denied == "lost" {
			err = status.Error(status.Code(err), "rebuilt")
		}
		return nil, err
	}
	return &testpb.SimpleResponse{}, w.end(ctx)
}

func (w *rpcWire) FullDuplexCall(ss testpb.TestService_FullDuplexCallServer) (err error) {
	if w.e.client == cutsBody {
		close(w.begun)
	}
	for err == nil {
		_, err = ss.Recv()
	}
	for range w.e.sent {
		_ = ss.Send(&testpb.StreamingOutputCallResponse{})
	}
	return w.end(ss.Context())
}

// end ends a call.
func (w *rpcWire) end(ctx context.Context) error {
	if w.e.client == leaves {
		close(w.begun)
	}
	if w.e.client == leaves || w.e.client == shortTime {
		<-ctx.Done()
	}
	if w.e.panics {
		panic("handler")
	}
	return status.Error(w.e.code, "")
}
