package guides_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/grpcmw"
	grpcclient "github.com/sluice-go/sluice/grpcmw/client"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// FullDuplexCall answers each message with an empty one.
func (service) FullDuplexCall(stream testpb.TestService_FullDuplexCallServer) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return nil
		}
		if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// exchange sends messages of n bytes on a stream until the server ends it, at most most; it returns
// how many were answered, and the code.
func exchange(server *grpc.Server, apiKey string, n, most int) (answered int, code codes.Code) {
	c, stop := serve(server)
	defer stop()
	stream, err := c.FullDuplexCall(metadata.AppendToOutgoingContext(context.Background(), "api-key", apiKey))
	message := &testpb.StreamingOutputCallRequest{Payload: &testpb.Payload{Body: make([]byte, n)}}
	for ; err == nil && answered < most; answered++ {
		_ = stream.Send(message)
		if _, err = stream.Recv(); err != nil {
			return answered, status.Code(err)
		}
	}
	return answered, status.Code(err)
}

// Messages of a connection, in the handler that reads them.
func Example_messages() {
	messages := algo.Must(algo.NewTokenBucket(algo.PerSecond(20)))
	ctx, user, received := context.Background(), keyfunc.Identity("alice"), make(chan string, 2)
	received <- "a"
	received <- "b"
	close(received)
	serveMessages := func() error {
		for message := range received {
			lease, err := algo.Wait(ctx, messages, user, 1) // messages.Acquire denies in place of waiting
			if err != nil {
				return err
			}
			lease.Release(algo.Succeeded)
			fmt.Print(message, " ")
		}
		return nil
	}

	connections := algo.Must(adaptive.PerKey(5))
	server := grpc.NewServer(append(append(auth,
		grpcmw.ServerOptions(connections, rpckey.Context(userOf), grpcmw.WithName("connections"))...),
		grpc.ChainStreamInterceptor(grpcmw.StreamServerInterceptor(messages, rpckey.Context(userOf),
			grpcmw.WithName("messages"), grpcmw.WithStreamMode(grpcmw.PerRecv), grpcmw.WithBackPressure(5*time.Second))))...)

	fmt.Println(serveMessages())
	fmt.Println(exchange(server, "key-b", 0, 25))
	// Output:
	// a b <nil>
	// 25 OK
}

func Example_bytesPerSecond() {
	file := strings.NewReader(strings.Repeat("x", 1000))

	perSecond := algo.Must(algo.NewTokenBucket(algo.PerSecond(1_000_000), algo.Burst(256_000))) // 1 MB/s for each user
	download := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _ := userOf(r.Context())
		_, _ = io.Copy(w, meter.NewReader(r.Context(), file, perSecond, keyfunc.Identity(user)))
	}) // an upload: r.Body = io.NopCloser(meter.NewReader(r.Context(), r.Body, perSecond, keyfunc.Identity(user)))

	size := func(_ context.Context, _ string, message any) int64 {
		return int64(proto.Size(message.(proto.Message)))
	}
	server := grpc.NewServer(append(auth, grpc.ChainStreamInterceptor(grpcmw.StreamServerInterceptor(
		perSecond, rpckey.Context(userOf), grpcmw.WithName("bytes"), grpcmw.WithCost(size),
		grpcmw.WithStreamMode(grpcmw.PerRecv|grpcmw.PerSend), grpcmw.WithBackPressure(time.Minute))))...)

	fmt.Println(get(authenticate(download), "/", "key-a").Body.Len())
	fmt.Println(exchange(server, "key-b", 1000, 3))
	spent := algo.Must(algo.Peek(context.Background(), perSecond, keyfunc.Identity("alice"), 1))
	fmt.Println(spent.Remaining <= 256_000)
	// Output:
	// 1000
	// 3 OK
	// true
}

func Example_failedLogins() {
	atOnce := algo.Must(adaptive.PerKey(3)) // guesses that are sent at the same moment
	perAccount := guard.FailuresOnly(algo.Must(algo.NewTokenBucket(algo.PerHour(5))))
	perAddress := guard.FailuresOnly(algo.Must(algo.NewTokenBucket(algo.PerHour(50))))

	login := httpmw.Limits([]httpmw.Policy{
		{Name: "at-once", Limiter: atOnce, Key: keyfunc.BasicUser()},
		{Name: "account", Limiter: perAccount, Key: keyfunc.BasicUser()},
		{Name: "address", Limiter: perAddress, Key: keyfunc.ClientIP()},
	}, httpmw.WithHeaders(httpmw.None), httpmw.WithMissingKey(http.StatusBadRequest),
		httpmw.WithRefundIf(func(status int) bool { return status != http.StatusUnauthorized }),
	)(http.HandlerFunc(checkPassword))

	server := grpc.NewServer(grpcmw.Limits([]grpcmw.Policy{
		{Name: "at-once", Limiter: atOnce, Key: rpckey.Metadata("account")},
		{Name: "account", Limiter: perAccount, Key: rpckey.Metadata("account")},
		{Name: "address", Limiter: perAddress, Key: rpckey.PeerIP()},
	}, grpcmw.WithRefundIf(func(c codes.Code) bool { return c != codes.Unauthenticated }))...)

	for _, password := range []string{"secret", "a", "b", "c", "d", "e", "secret"} {
		r := httptest.NewRequest("POST", "/login", nil)
		r.SetBasicAuth("alice", password)
		w := httptest.NewRecorder()
		login.ServeHTTP(w, r)
		fmt.Print(w.Code, " ")
	}
	fmt.Println(calls(server, "bob", "bob", "bob", "bob", "bob", "bob", "bob"))
	// Output: 200 401 401 401 401 401 429 [OK OK OK OK OK OK OK]
}

func Example_partnersLimit() {
	perSecond := algo.Must(algo.NewPacer(algo.PerSecond(46))) // 50 are allowed: 8 % below, without a burst
	partner := &http.Client{Timeout: time.Minute, Transport: client.Transport(nil, perSecond, keyfunc.Global())}
	paced := grpcclient.DialOptions(perSecond, rpckey.Global()) // for grpc.NewClient

	fmt.Println(partner.Timeout, len(paced) > 0)
	// Output: 1m0s true
}

func Example_pool() {
	pool, err := adaptive.New(adaptive.Fixed(50), adaptive.WithQueue(adaptive.CoDel(100, 0, 0)))
	if err != nil {
		log.Fatal(err)
	}
	handler := httpmw.Limit(pool, keyfunc.Global(), httpmw.WithName("pool"))(mux)
	server := grpc.NewServer(grpcmw.ServerOptions(pool, rpckey.Global(), grpcmw.WithName("pool"))...)

	fmt.Println(gets(handler, "", 1), calls(server, ""), pool.InFlight())
	// Output: [200] [OK] 0
}

func Example_capacity() {
	perAddress := httpmw.Limit(algo.Must(algo.NewTokenBucket(algo.PerSecond(10))), keyfunc.ClientIP(), httpmw.WithName("address"))

	capacity, err := adaptive.New(adaptive.Default())
	if err != nil {
		log.Fatal(err)
	}
	handler := perAddress(httpmw.Limit(capacity, keyfunc.Global(), httpmw.WithName("capacity"))(mux))
	server := grpc.NewServer(grpcmw.ServerOptions(capacity, rpckey.Global(), grpcmw.WithName("capacity"))...)

	fmt.Println(gets(handler, "", 1), calls(server, ""))
	// Output: [200] [OK]
}

func Example_severalAtOnce() {
	perSecond := algo.Must(algo.NewTokenBucket(algo.PerSecond(50)))
	perDay := algo.Must(algo.NewTokenBucket(algo.PerDay(2)))
	total := algo.Must(algo.NewTokenBucket(algo.PerSecond(1000)))

	limit := httpmw.Limits([]httpmw.Policy{
		{Name: "second", Limiter: perSecond, Key: keyfunc.Context(userOf)},
		{Name: "day", Limiter: perDay, Key: keyfunc.Context(userOf)},
		{Name: "total", Limiter: total, Key: keyfunc.Global()},
	})
	server := grpc.NewServer(append(auth, grpcmw.Limits([]grpcmw.Policy{
		{Name: "second", Limiter: perSecond, Key: rpckey.Context(userOf)},
		{Name: "day", Limiter: perDay, Key: rpckey.Context(userOf)},
		{Name: "total", Limiter: total, Key: rpckey.Global()},
	})...)...)

	fmt.Println(gets(authenticate(limit(mux)), "key-a", 3), calls(server, "key-b", "key-b", "key-b"))
	// Output: [200 200 429] [OK OK ResourceExhausted]
}
