// Overload serves an HTTP API that needs processor time, behind a limiter, and
// prints the state of the limiter every second. Overload it with and without a
// limiter:
//
//	go run ./examples/overload -limiter none
//	go run -C bench ./overload -url http://127.0.0.1:8080/ -loads 5
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
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, args []string) error {
	flags := flag.NewFlagSet("overload", flag.ContinueOnError)
	address := flags.String("http", "127.0.0.1:8080", "address of the API")
	name := flags.String("limiter", "default", "none, bbr, runqueue or default")
	work := flags.Duration("work", 5*time.Millisecond, "processor time of a request")
	exit := flags.Duration("exit", 0, "stop after this time; 0: on Ctrl-C")
	flags.SetOutput(out)
	if err := flags.Parse(args); err != nil {
		return err
	}
	limiter, err := limiterOf(*name)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	api := &api{work: stepsOf(*work), limiter: limiter}
	s := &http.Server{Handler: api.handler(), ReadHeaderTimeout: 10 * time.Second}
	if *exit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *exit)
		defer cancel()
	}
	fmt.Fprintf(out, "%v of work for each request, limiter %s; to load it:\n\n  go run -C bench ./overload -url http://%v/ -loads 5\n\n",
		*work, *name, listener.Addr())
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	api.report(ctx, out)
	return errors.Join(s.Close(), ended(<-served))
}

// ended is nil where a server was closed.
func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// limiterOf makes the limiter of that name, nil for none. This is all that a
// server needs.
func limiterOf(name string) (*adaptive.Limiter, error) {
	switch name {
	case "none":
		return nil, nil
	case "default":
		return adaptive.New(adaptive.Default())
	case "runqueue":
		return adaptive.New(adaptive.RunQueue())
	case "bbr":
		return adaptive.New(strategy.BBR())
	}
	return nil, fmt.Errorf("limiter is %q, want none, bbr, runqueue or default", name)
}

// api is the service.
type api struct {
	work    int
	limiter *adaptive.Limiter // nil: none
	came    atomic.Int64      // requests
	done    atomic.Int64      // of them, worked on
}

func (a *api) handler() http.Handler {
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		spin(a.work)
		a.done.Add(1)
		fmt.Fprintln(w, "done")
	})
	if a.limiter != nil {
		h = httpmw.Limit(a.limiter, keyfunc.Global())(h)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.came.Add(1)
		h.ServeHTTP(w, r)
	})
}
