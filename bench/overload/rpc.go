package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/sluice-go/sluice/bench/loadgen"
)

const (
	rpcMethod = "/overload.Service/Do"
	rpcConns  = 32
)

// rpcClient calls the server over a fixed number of connections.
type rpcClient struct {
	conns [rpcConns]*grpc.ClientConn
	next  int
}

func dialRPC(addr string) (*rpcClient, error) {
	c := &rpcClient{}
	for i := range c.conns {
		var err error
		if c.conns[i], err = grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDisableRetry()); err != nil {
			return nil, err
		}
		c.conns[i].Connect()
	}
	return c, nil
}

func (c *rpcClient) close() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

func call(conn *grpc.ClientConn, timeout time.Duration) int16 {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var e emptypb.Empty
	err := conn.Invoke(ctx, rpcMethod, &e, &e)
	switch status.Code(err) {
	case codes.OK:
		return http.StatusOK
	case codes.Unavailable, codes.ResourceExhausted:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return loadgen.TimedOut
	}
	return loadgen.Broken
}

// run is loadgen.Run over gRPC: one goroutine for each call.
func (c *rpcClient) run(cfg loadgen.Config) []loadgen.Answer {
	total := 0.0
	for _, p := range cfg.Phases {
		total += p.Rate * p.Duration.Seconds()
	}
	all := make([]loadgen.Answer, 0, int(total*1.2)+1000)
	rng := rand.New(rand.NewPCG(cfg.Seed, 1))
	var calls sync.WaitGroup
	start, begin := time.Now(), time.Duration(0)
	for _, p := range cfg.Phases {
		due := begin
		for {
			due += time.Duration(rng.ExpFloat64() / p.Rate * 1e9)
			if due >= begin+p.Duration || len(all) == cap(all) {
				break
			}
			if wait := due - time.Since(start); wait > 50*time.Microsecond {
				time.Sleep(wait)
			}
			all = append(all, loadgen.Answer{At: due})
			a, conn := &all[len(all)-1], c.conns[c.next%rpcConns]
			c.next++
			calls.Go(func() {
				a.Status = call(conn, cfg.Timeout)
				a.Took = time.Since(start) - a.At
			})
		}
		begin += p.Duration
	}
	calls.Wait()
	return all
}

// closed is loadgen.Closed over gRPC.
func (c *rpcClient) closed(n int, d time.Duration) (ok, other int64) {
	end := time.Now().Add(d)
	counts := make([][2]int64, n)
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			for time.Now().Before(end) {
				if call(c.conns[i%rpcConns], time.Minute) == http.StatusOK {
					counts[i][0]++
				} else {
					counts[i][1]++
				}
			}
		})
	}
	calls.Wait()
	for _, n := range counts {
		ok, other = ok+n[0], other+n[1]
	}
	return ok, other
}
