package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-chi/httprate"
	grpcratelimit "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/ratelimit"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"
)

const (
	httpHeaders = "sluice"
	httpNone    = "sluice, no fields"
	httpClients = 1024
)

// nothing is left once each client has spent its one.
var nothing = quota{1, 24 * time.Hour}

// overHTTP serves requests of httpClients clients in turn.
func overHTTP(q quota) (cs []contender) {
	ip := keyfunc.ClientIP()
	limit := func(mode httpmw.HeadersMode) wrap {
		return httpmw.Limit(algo.Must(algo.NewTokenBucket(q.rate())), ip, httpmw.WithHeaders(mode))
	}
	reqs := requests(httpClients)
	add := func(name string, k kind, w wrap) {
		cs = append(cs, contender{name, k, serve(w, k, reqs, q == nothing)})
	}
	add("bare handler", floor, func(h http.Handler) http.Handler { return h })
	for _, l := range those(hasMiddleware) {
		if l.name == sluice {
			add(httpHeaders, ours, l.wrap(q, false))
			add("sluice, legacy fields", ours, limit(httpmw.Legacy))
			add(httpNone, ours, limit(httpmw.None))
			continue
		}
		add(l.name, peer, l.wrap(q, false))
	}
	add("httprate, no fields", peer, httprate.LimitBy(q.units, q.period, httprate.KeyByIP,
		httprate.WithResponseHeaders(httprate.ResponseHeaders{})))
	return cs
}

// serve is for one goroutine. With spent it serves each client once
// beforehand; the bare handler then is one that refuses.
func serve(wrap wrap, k kind, reqs []*http.Request, spent bool) func(int) int {
	inner := &counter{refuse: spent && k == floor}
	h := wrap(inner)
	w := &sink{header: make(http.Header, 8)}
	if spent {
		for _, r := range reqs {
			h.ServeHTTP(w, r)
		}
	}
	next := 0
	return func(n int) int {
		before := inner.served
		for range n {
			h.ServeHTTP(w, reqs[next])
			clear(w.header)
			if next++; next == len(reqs) {
				next = 0
			}
		}
		return inner.served - before
	}
}

// counter is a handler that does nothing but count.
type counter struct {
	served int
	refuse bool // or not even that
}

func (c *counter) ServeHTTP(http.ResponseWriter, *http.Request) {
	if !c.refuse {
		c.served++
	}
}

// sink is a response writer that costs nothing. Its header map is used again
// for each response, which costs all contenders the same.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header                  { return s.header }
func (s *sink) Write(b []byte) (int, error)          { return len(b), nil }
func (s *sink) WriteString(text string) (int, error) { return len(text), nil }
func (s *sink) WriteHeader(int)                      {}

// requests come from n clients, each with an address of its own.
func requests(n int) []*http.Request {
	rs := make([]*http.Request, n)
	for i := range rs {
		rs[i] = httptest.NewRequest(http.MethodGet, "/orders", nil)
		rs[i].RemoteAddr = fmt.Sprintf("198.51.%d.%d:%d", i>>8, i&255, 40000+i)
	}
	return rs
}

// overGRPC calls a handler that does nothing, alone and behind interceptors.
func overGRPC() []contender {
	limit := func(key keyfunc.RPC) func(int) int {
		return call(grpcmw.UnaryServerInterceptor(algo.Must(algo.NewTokenBucket(plenty.rate())), key))
	}
	xtime := grpcratelimit.UnaryServerInterceptor(byXTime{rate.NewLimiter(fast, huge)})
	return []contender{
		{"bare handler", floor, call(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			return h(ctx, req)
		})},
		{"sluice RPCGlobal", ours, limit(rpckey.Global())},
		{"sluice FullMethod", ours, limit(rpckey.FullMethod())},
		{"sluice PeerIP", ours, limit(rpckey.PeerIP())},
		{"go-grpc-middleware, x/time/rate, no keys", peer, call(xtime)},
	}
}

// byXTime is how the documentation of go-grpc-middleware brings in a limiter.
// It is handed the context only, and has no keys.
type byXTime struct{ limiter *rate.Limiter }

func (x byXTime) Limit(context.Context) error {
	if !x.limiter.Allow() {
		return errSpent
	}
	return nil
}

var errSpent = errors.New("rate limit spent")

// call makes the calls that a server of google.golang.org/grpc would make, from
// a peer whose address it knows. It is for one goroutine.
func call(intercept grpc.UnaryServerInterceptor) func(int) int {
	ctx := grpcpeer.NewContext(context.Background(), &grpcpeer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711}})
	ctx = metadata.NewIncomingContext(ctx, metadata.MD{"user-agent": {"bench"}})
	info := &grpc.UnaryServerInfo{FullMethod: "/orders.v1.Orders/List"}
	served := 0
	handler := func(context.Context, any) (any, error) { served++; return nil, nil }
	return func(n int) int {
		before := served
		for range n {
			if _, err := intercept(ctx, nil, info, handler); err != nil {
				break
			}
		}
		return served - before
	}
}
