package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/examples/gateway/config"
	"github.com/sluice-go/sluice/examples/rls/service"
)

// workload is a kind of requests: each has the same descriptors, with the user as a value.
type workload struct {
	name        string
	users       int
	descriptors []string // keys
	limit       string   // of each descriptor here
	perMinute   int64    // the same limit as a fixed window of the design
	blocks      int64    // of the store, 0: every decision is exact
}

var (
	one   = []string{"user"}
	three = []string{"user", "path", "tenant"}
)

// A decision on a key that was not used lately takes a call to Redis in all designs. Most
// traffic is of another kind: busy keys, and callers that are over their limits.
var workloads = []workload{
	{"1 descriptor, 100 000 callers under the limit", 100_000, one, "fixed-window 1000000/min", 1_000_000, 0},
	{"3 descriptors, 100 000 callers under the limit", 100_000, three, "fixed-window 1000000/min", 1_000_000, 0},
	{"1 descriptor, 100 busy callers under the limit, blocks", 100, one, "60000000/min", 60_000_000, 1000},
	{"3 descriptors, 100 busy callers under the limit, blocks", 100, three, "60000000/min", 60_000_000, 1000},
	{"1 descriptor, 100 callers over the limit, a bucket", 100, one, "20/min", 20, 0},
	{"1 descriptor, 100 callers over the limit, a window", 100, one, "fixed-window 20/min", 20, 0},
	{"3 descriptors, 100 callers over the limit, a window", 100, three, "fixed-window 20/min", 20, 0},
}

// file is the configuration of a workload.
func (w workload) file() string {
	var b strings.Builder
	b.WriteString("domains:\n  - name: bench\n    headers: none\n    descriptors:\n")
	for _, key := range w.descriptors {
		fmt.Fprintf(&b, "      - {key: %s, limit: %s}\n", key, w.limit)
	}
	return b.String()
}

// request returns a user's request.
func (w workload) request(user int) *rls.RateLimitRequest {
	r := &rls.RateLimitRequest{Domain: "bench"}
	value := "user-" + strconv.Itoa(user)
	for _, key := range w.descriptors {
		r.Descriptors = append(r.Descriptors, &ratelimit.RateLimitDescriptor{
			Entries: []*ratelimit.RateLimitDescriptor_Entry{{Key: key, Value: value}},
		})
	}
	return r
}

// own is the service of this folder.
type own struct {
	workload workload
	client   *redis.Client
	store    *distributed.Store
	service  *service.Service
}

func newOwn(address string, w workload) (contender, error) {
	f, err := config.Parse("bench", []byte(w.file()))
	if err != nil {
		return nil, err
	}
	o := &own{workload: w, client: redis.NewClient(&redis.Options{Addr: address})}
	opts := []distributed.Option{distributed.WithPrefix("own-" + strings.ReplaceAll(w.name, " ", "-"))}
	if w.blocks > 0 {
		opts = append(opts, distributed.WithBlocks(w.blocks))
	}
	// A patient store: a decision that a busy machine delays is no decision without Redis.
	if o.store, err = distributed.New(o.client, append(opts, distributed.WithTimeout(time.Second))...); err != nil {
		return nil, err
	}
	o.service, err = service.New(f, service.Options{Store: o.store, Log: slog.New(slog.DiscardHandler)})
	return o, err
}

func (o *own) decide(ctx context.Context, user int) (bool, error) {
	resp, err := o.service.ShouldRateLimit(ctx, o.workload.request(user))
	return resp.GetOverallCode() == rls.RateLimitResponse_OK, err
}

func (o *own) close() {
	_ = o.store.Close() // the process ends
	_ = o.client.Close()
}

// startRedis starts a redis-server without persistence on a free port.
func startRedis() (address string, stop func(), err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address = free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if err := free.Close(); err != nil {
		return "", nil, err
	}
	server := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = server.Process.Kill(); _ = server.Wait() }
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	for range 100 {
		if err = client.Ping(context.Background()).Err(); err == nil {
			return address, stop, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("redis-server does not answer: %w", err)
}
