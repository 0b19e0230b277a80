// Command rls is a rate limit service for Envoy and for whatever else speaks
// envoy.service.ratelimit.v3. Its limits come from the domains of a file like
// that of the gateway, which it reads again when it changes, or on SIGHUP,
// without forgetting what anybody owes.
//
//	rls -config rls.yaml          serve
//	rls -config rls.yaml -check   say what is wrong with the file
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/examples/gateway/config"
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, nil))) // for what the library warns of
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, hup))
}

// run is the command; it returns its exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, hup <-chan os.Signal) int {
	flags := flag.NewFlagSet("rls", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", "rls.yaml", "the file")
	check := flags.Bool("check", false, "check the file and exit: status 1 if it is wrong")
	poll := flags.Duration("poll", 2*time.Second, "how often the file is looked at for changes")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	f, err := config.Load(*path)
	if err == nil && len(f.Domains) == 0 {
		err = f.Errorf("domains", "is missing, and a rate limit service without domains limits nothing")
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if *check {
		fmt.Fprintf(stdout, "%s: ok, %d domains\n", *path, len(f.Domains))
		return 0
	}
	if *poll <= 0 {
		fmt.Fprintf(stderr, "rls: -poll is %v, want more than 0\n", *poll)
		return 2
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	s, err := newServer(f, log)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if err := s.serve(ctx, *poll, hup); err != nil {
		log.Error("rls failed", "error", err)
		return 1
	}
	return 0
}
