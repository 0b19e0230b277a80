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

// options are the flags.
type options struct {
	httpAddr, grpcAddr string
	exit               bool
}

func parse(out io.Writer, args []string) (o options, err error) {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.StringVar(&o.httpAddr, "http", "127.0.0.1:8080", "address of the HTTP API")
	flags.StringVar(&o.grpcAddr, "grpc", "127.0.0.1:9090", "address of the gRPC service")
	flags.BoolVar(&o.exit, "exit", false, "stop after the calls")
	flags.SetOutput(io.Discard) // one line of error is enough
	err = flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		flags.Usage()
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q; try -help", flags.Arg(0))
	}
	return o, err
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o, err := parse(out, args)
	if err != nil {
		return err
	}
	// One limiter; the key says that each user has a quota on each route.
	limiter, err := algo.NewTokenBucket(algo.PerSecond(perSecond), algo.Burst(burst))
	if err != nil {
		return err
	}
	api, err := serveHTTP(o.httpAddr, limiter)
	if err != nil {
		return err
	}
	defer api.Close()
	service, err := serveGRPC(o.grpcAddr, limiter)
	if err != nil {
		return err
	}
	defer service.Close()
	if err := drive(ctx, out, api.address, service.address); err != nil {
		return err
	}
	if o.exit {
		return nil
	}
	fmt.Fprintf(out, hints, api.address, service.address)
	<-ctx.Done()
	return nil
}

// server is something that serves on an address until it is closed.
type server struct {
	address string
	close   func() error
}

func (s server) Close() error { return s.close() }

func serveHTTP(address string, limiter algo.Limiter) (server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return server{}, err
	}
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
	return server{listener.Addr().String(), s.Close}, nil
}

func hello(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "hello from %s\n", r.URL.Path)
}

func serveGRPC(address string, limiter algo.Limiter) (server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return server{}, err
	}
	key := rpckey.Join(rpckey.Metadata("x-user"), rpckey.FullMethod())
	s := grpc.NewServer(grpcmw.ServerOptions(limiter, key)...)
	testpb.RegisterTestServiceServer(s, greeter{})
	reflection.Register(s)
	go func() {
		if err := s.Serve(listener); err != nil {
			fmt.Fprintln(os.Stderr, "quickstart: grpc:", err)
		}
	}()
	return server{listener.Addr().String(), func() error { s.Stop(); return nil }}, nil
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
