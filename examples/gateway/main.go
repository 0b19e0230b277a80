// Command gateway is a reverse proxy that keeps clients to limits. Its routes,
// keys and limits come from one YAML file, which it reads again when it
// changes, or on SIGHUP, without forgetting what anybody owes.
//
//	gateway -config gateway.yaml          serve
//	gateway -config gateway.yaml -check   say what is wrong with the file
//
// The README beside it has the fields of the file.
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
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", "gateway.yaml", "the file")
	check := flags.Bool("check", false, "check the file and exit: status 1 if it is wrong")
	poll := flags.Duration("poll", 2*time.Second, "how often the file is looked at for changes")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	f, err := config.Load(*path)
	if err == nil && len(f.Routes) == 0 {
		err = f.Errorf("routes", "is missing, and a gateway without routes serves nothing")
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if *check {
		fmt.Fprintf(stdout, "%s: ok, %d routes\n", *path, len(f.Routes))
		return 0
	}
	if *poll <= 0 {
		fmt.Fprintf(stderr, "gateway: -poll is %v, want more than 0\n", *poll)
		return 2
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	s, err := newServer(f, log)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	if err := s.serve(ctx, *poll, hup); err != nil {
		log.Error("gateway failed", "error", err)
		return 1
	}
	return 0
}
