package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/go-redis/v9"
)

// poolSize is the number of connections to Redis that envoyproxy/ratelimit has by default.
const poolSize = 10

// design is what envoyproxy/ratelimit's README describes: the counter of each descriptor has
// the start of its window in its name, is raised by INCRBY and gets its time to live by
// EXPIRE; both commands of all descriptors of a request go in one pipeline.
type design struct {
	workload workload
	client   *redis.Client
}

func newDesign(address string, w workload) (contender, error) {
	return &design{w, redis.NewClient(&redis.Options{Addr: address, PoolSize: poolSize, MaxRetries: -1})}, nil
}

func (d *design) close() { _ = d.client.Close() }

const window = time.Minute

// key is the name of a descriptor's counter now.
func key(r *rls.RateLimitRequest, i int, now int64) string {
	var b strings.Builder
	b.WriteString(r.Domain)
	for _, e := range r.Descriptors[i].Entries {
		b.WriteString("_" + e.Key + "_" + e.Value)
	}
	seconds := int64(window / time.Second)
	fmt.Fprintf(&b, "_%d", now/seconds*seconds)
	return b.String()
}

func (d *design) decide(ctx context.Context, user int) (bool, error) {
	r, now := d.workload.request(user), time.Now().Unix()
	pipe := d.client.Pipeline()
	counts := make([]*redis.IntCmd, len(r.Descriptors))
	for i := range r.Descriptors {
		name := key(r, i, now)
		counts[i] = pipe.IncrBy(ctx, name, 1)
		pipe.Expire(ctx, name, window)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return false, err
	}
	return answer(d.workload, r, counts), nil
}

// answer makes the statuses, as the service does.
func answer(w workload, r *rls.RateLimitRequest, counts []*redis.IntCmd) bool {
	resp := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}
	for i := range r.Descriptors {
		s := &rls.RateLimitResponse_DescriptorStatus{
			Code:         rls.RateLimitResponse_OK,
			CurrentLimit: &rls.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(w.perMinute), Unit: rls.RateLimitResponse_RateLimit_MINUTE},
		}
		if left := w.perMinute - counts[i].Val(); left >= 0 {
			s.LimitRemaining = uint32(left)
		} else {
			s.Code, resp.OverallCode = rls.RateLimitResponse_OVER_LIMIT, rls.RateLimitResponse_OVER_LIMIT
		}
		resp.Statuses = append(resp.Statuses, s)
	}
	return resp.OverallCode == rls.RateLimitResponse_OK
}

// piped is the design with implicit pipelining, which is off by default there: a connection
// sends the commands of up to eight requests, or of 150 us, together.
type piped struct {
	design
	calls chan *call
	done  chan struct{}
}

type call struct {
	names  []string
	counts []*redis.IntCmd
	err    chan error
}

const (
	pipeWindow = 150 * time.Microsecond
	pipeLimit  = 8
)

func newPiped(address string, w workload) (contender, error) {
	p := &piped{
		design: design{w, redis.NewClient(&redis.Options{Addr: address, PoolSize: poolSize, MaxRetries: -1})},
		calls:  make(chan *call), done: make(chan struct{}),
	}
	for range poolSize {
		go p.send()
	}
	return p, nil
}

func (p *piped) close() {
	close(p.done)
	p.design.close()
}

// send is one connection.
func (p *piped) send() {
	for {
		var batch []*call
		select {
		case <-p.done:
			return
		case c := <-p.calls:
			batch = append(batch, c)
		}
		full := time.NewTimer(pipeWindow)
	collect:
		for len(batch) < pipeLimit {
			select {
			case c := <-p.calls:
				batch = append(batch, c)
			case <-full.C:
				break collect
			}
		}
		full.Stop()
		p.execute(batch)
	}
}

func (p *piped) execute(batch []*call) {
	ctx := context.Background()
	pipe := p.client.Pipeline()
	for _, c := range batch {
		for _, name := range c.names {
			c.counts = append(c.counts, pipe.IncrBy(ctx, name, 1))
			pipe.Expire(ctx, name, window)
		}
	}
	_, err := pipe.Exec(ctx)
	for _, c := range batch {
		c.err <- err
	}
}

func (p *piped) decide(_ context.Context, user int) (bool, error) {
	r, now := p.workload.request(user), time.Now().Unix()
	c := &call{err: make(chan error, 1)}
	for i := range r.Descriptors {
		c.names = append(c.names, key(r, i, now)+"p")
	}
	p.calls <- c
	if err := <-c.err; err != nil {
		return false, err
	}
	return answer(p.workload, r, c.counts), nil
}
