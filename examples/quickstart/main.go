// Quickstart serves an HTTP API and a gRPC service from one process, with one
// limiter for both: every user may call every route 10 times at once and 5
// times a second after that.
//
// On start it calls itself as three users over both transports and prints the
// admissions. Then it goes on serving until it is interrupted; -exit stops after
// the calls.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

const (
	burst     = 10
	perSecond = 5
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	httpAddr := flags.String("http", "127.0.0.1:8080", "address of the HTTP API")
	grpcAddr := flags.String("grpc", "127.0.0.1:9090", "address of the gRPC service")
	exit := flags.Bool("exit", false, "stop after the calls")
	flags.SetOutput(io.Discard) // one line of error is enough
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(out)
		flags.Usage()
		return err
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; try -help", flags.Arg(0))
	}
	// One limiter; the key says that each user has a quota on each route.
	limiter, err := algo.NewTokenBucket(algo.PerSecond(perSecond), algo.Burst(burst))
	if err != nil {
		return err
	}
	api, err := net.Listen("tcp", *httpAddr)
	if err != nil {
		return err
	}
	service, err := net.Listen("tcp", *grpcAddr)
	if err != nil {
		return errors.Join(err, api.Close())
	}
	defer serveHTTP(api, limiter).Close()
	defer serveGRPC(service, limiter).Stop()
	err = drive(ctx, out, api.Addr().String(), service.Addr().String())
	if err != nil || *exit {
		return err
	}
	fmt.Fprintf(out, hints, api.Addr(), service.Addr())
	<-ctx.Done()
	return nil
}

func serveHTTP(listener net.Listener, limiter algo.Limiter) *http.Server {
	limit := httpmw.Limit(limiter, keyfunc.Join(keyfunc.Header("X-User"), keyfunc.Route()))
	mux := http.NewServeMux()
	mux.Handle("GET /hello", limit(http.HandlerFunc(hello)))
	mux.Handle("GET /report", limit(http.HandlerFunc(hello)))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "quickstart: http:", err)
		}
	}()
	return s
}

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello from %s\n", r.URL.Path) }

func serveGRPC(listener net.Listener, limiter algo.Limiter) *grpc.Server {
	key := rpckey.Join(rpckey.Metadata("x-user"), rpckey.FullMethod())
	s := grpc.NewServer(grpcmw.ServerOptions(limiter, key)...)
	testpb.RegisterTestServiceServer(s, greeter{})
	reflection.Register(s)
	go func() {
		if err := s.Serve(listener); err != nil {
			fmt.Fprintln(os.Stderr, "quickstart: grpc:", err)
		}
	}()
	return s
}

// greeter is a service that comes with grpc-go, so that this example needs no
// generated code of its own.
type greeter struct {
	testpb.UnimplementedTestServiceServer
}

// EmptyCall answers with nothing.
func (greeter) EmptyCall(context.Context, *testpb.Empty) (*testpb.Empty, error) {
	return &testpb.Empty{}, nil
}

const hints = `
Serving until Ctrl-C. To try it from another terminal:

  curl -si -H 'X-User: dave' http://%[1]s/hello
  for i in $(seq 15); do curl -s -o /dev/null -w '%%{http_code} ' -H 'X-User: dave' http://%[1]s/hello; done
  curl -si -H 'X-User: dave' http://%[1]s/report      # another route, another quota
  grpcurl -plaintext -H 'x-user: dave' %[2]s grpc.testing.TestService/EmptyCall
`
