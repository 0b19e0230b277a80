// Llm is a gateway before a language model: requests and tokens a minute, money a day
// and streams in flight, by the plan of the user, charged while an answer streams.
//
//	go run -C programs/llm .          # the gateway, and a model that streams words
//	go run -C programs/llm . -exit    # some seconds of traffic, a table, and stop
//
//	curl -N -H 'Authorization: Bearer bob-key' 127.0.0.1:8080/v1/chat/completions \
//	  -d '{"model":"words","stream":true,"messages":[{"role":"user","content":"Hello"}]}'
//
// gateway.go is the gateway, llm.json its configuration. With -redis several gateways
// share the limits, and with -upstream they stand before a real model.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"
	_ "time/tzdata" // for limits of a calendar where the system has no time zones

	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/httpmw/admin"
)

//go:embed llm.json
var standard []byte

type options struct {
	config, http, admin, redis, upstream string
	exit                                 bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "llm:", err)
		os.Exit(1)
	}
}

func parse(out io.Writer, args []string) (o options, err error) {
	flags := flag.NewFlagSet("llm", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.config, "config", "", "file of plans, users and prices; default llm.json as it was built in")
	flags.StringVar(&o.http, "http", "127.0.0.1:8080", "address of the gateway")
	flags.StringVar(&o.admin, "admin", "127.0.0.1:8081", "address of the admin page, for operators only")
	flags.StringVar(&o.redis, "redis", "", "address of Redis; default none: limits of this process")
	flags.StringVar(&o.upstream, "upstream", "", "URL of the model; default one that streams words")
	flags.BoolVar(&o.exit, "exit", false, "send some seconds of traffic, print a table and stop")
	return o, flags.Parse(args)
}

func run(ctx context.Context, out io.Writer, args []string) error {
	o, err := parse(out, args)
	if err != nil {
		return err
	}
	c, err := loadFile(o.config)
	if err != nil {
		return err
	}
	store, err := connect(o.redis)
	if err != nil {
		return err
	}
	if store != nil {
		defer store.Close()
		defer store.Client().Close()
	}
	limits, err := c.open(store)
	if err != nil {
		return err
	}
	return serve(ctx, out, o, c, limits, store)
}

// serve runs the gateway until ctx ends.
func serve(ctx context.Context, out io.Writer, o options, c *config, limits map[string]limits, store *distributed.Store) error {
	var servers servers
	defer servers.close()
	defer http.DefaultClient.CloseIdleConnections() // to the upstream
	var err error
	if o.upstream == "" {
		if o.upstream, err = servers.start("127.0.0.1:0", upstream{time.Millisecond}); err != nil {
			return err
		}
	}
	page, err := newPage(limits, store)
	if err != nil {
		return err
	}
	handler, err := newGateway(c, o.upstream, limits, page.Observe)
	if err != nil {
		return err
	}
	front, err := servers.start(o.http, handler)
	if err != nil {
		return err
	}
	operators, err := servers.start(o.admin, page)
	if err != nil {
		return err
	}
	if o.exit {
		return demo(ctx, out, c, limits, front, operators)
	}
	fmt.Fprintf(out, "The gateway is on %s, its admin page on %s, until Ctrl-C.\n", front, operators)
	<-ctx.Done()
	return nil
}

// newPage is the page for operators.
func newPage(all map[string]limits, store *distributed.Store) (*admin.Admin, error) {
	opts := []admin.Option{admin.WithTitle("llm")}
	var names []string
	for plan, l := range all {
		opts = append(opts, admin.WithPolicy(plan+"-requests", l.requests), admin.WithPolicy(plan+"-tokens", l.tokens),
			admin.WithPolicy(plan+"-money", l.money), admin.WithPolicy(plan+"-streams", l.streams))
		names = append(names, plan+"-requests", plan+"-tokens", plan+"-money", plan+"-streams")
	}
	if store != nil {
		opts = append(opts, admin.WithStore("redis", store, names...))
	}
	return admin.New(opts...)
}

// servers are the servers of this process.
type servers []*http.Server

func (s *servers) start(address string, h http.Handler) (url string, err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	*s = append(*s, server)
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

func (s *servers) close() {
	for _, server := range *s {
		_ = server.Close()
	}
}
