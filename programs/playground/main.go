// Playground shows the algorithms side by side: a page with a traffic
// generator, the decisions of each algorithm about the same requests, and a
// server that a self-tuning limit keeps within its capacity.
//
//	go run -C programs/playground .
//
// Nothing is simulated: each request is put to real limiters in this process,
// and the overload is real work behind a real server. Both run only while a
// page is open. -exit checks itself without a browser and stops.
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "playground:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	address string
	exit    bool
	clients string
	rate    int
}

func parse(out io.Writer, args []string) (o options, err error) {
	flags := flag.NewFlagSet("playground", flag.ContinueOnError)
	flags.StringVar(&o.address, "http", "127.0.0.1:8088", "address of the page")
	flags.BoolVar(&o.exit, "exit", false, "check itself over a burst and stop")
	flags.StringVar(&o.clients, "clients", "", "be the clients of this URL, as the playground asks itself")
	flags.IntVar(&o.rate, "rate", 100, "requests a second of the clients")
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
	if o.clients != "" {
		return beClients(ctx, os.Stdin, out, o.clients, o.rate)
	}
	return open(ctx, out, o)
}

// open serves the page until ctx ends.
func open(ctx context.Context, out io.Writer, o options) error {
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return err
	}
	p, err := newPlayground()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &http.Server{
		Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }, // pages that watch end with it
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	url := "http://" + listener.Addr().String()
	if o.exit {
		err = selfTest(ctx, out, url)
	} else {
		fmt.Fprintf(out, "The playground is open on %s/ until Ctrl-C.\n", url)
		select {
		case <-ctx.Done():
		case err = <-served:
		}
	}
	stop()
	return errors.Join(err, shutdown(s), p.Close())
}

// shutdown lets the requests end, when their context ends.
func shutdown(s *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.Shutdown(ctx)
}
