// Package remote is the way to Redis: it sends scripts in batches, with one queue and one
// breaker for each node, refunds the charges of late replies, and never drops a correction
// because a node is away. It knows no limit.
package remote

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Client sends requests to Redis for a host.
type Client struct {
	Config
	transport Transport
	host      Host
	router    *router
	ctx       context.Context // of the commands; ends with the client
	cancel    context.CancelFunc

	running    context.Context // of the background work; ends when Stop begins
	stop       context.CancelFunc
	mu         sync.Mutex // no background work begins after closed is set
	closed     atomic.Bool
	goroutines sync.WaitGroup
	lost       atomic.Int64 // corrections
}

// Config is the settings of a client.
type Config struct {
	Timeout       time.Duration // of a decision
	ProbeInterval time.Duration // the least time between two probes of a node
	Prefix        string        // of the keys that find a node
}

// Host is what a client works for. Its methods are called on the goroutine that meets the
// change, and must be quick.
type Host interface {
	// Probe returns the requests that check a node: the first one writes under key, which is
	// on the node. Probed receives all of them with their replies, if the first one has one.
	Probe(key string, n *Node) []*Request
	Probed(probes []*Request)
	// Parted asks whether keys of several tags lie apart.
	Parted() (bool, error)
	// Scripts are those that decisions run, and others that they may run later.
	Scripts() (used, others []*Script)

	// Failed: a command failed, so decisions are local.
	Failed(f Failure, err error)
	// Lost: the correction of a limit was given up; name may be empty.
	Lost(name string, total int64, err error)
	// ProcessLate: this process was late by lag, and not the node.
	ProcessLate(lag time.Duration)
	// Far: replies of a node take longer than the timeout.
	Far(addr string, median, p99 time.Duration)
	// Changed: the breaker of a node opened (percent 0), lets a few calls pass (below 100), or
	// closed (100).
	Changed(addr string, percent int, err error)
}

// FullLevel is the percentage of the calls that go to a node that is well.
const FullLevel = 100

// New makes a client. It does not dial.
func New(t Transport, cfg Config, host Host) *Client {
	if g, is := t.(goRedis); is {
		t = g.within(cfg.ReplyTimeout())
	}
	c := &Client{Config: cfg, transport: t, host: host}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.running, c.stop = context.WithCancel(c.ctx)
	c.router = newRouter(c)
	return c
}

// ReplyTimeout is how long a late reply is awaited, so that its charge can be
// refunded.
func (c *Config) ReplyTimeout() time.Duration { return max(time.Second, 10*c.Timeout) }

// Do sends r and waits for the reply. True: r has a reply, which may be an
// error, and belongs to the caller. False: there is no reply, and r is gone.
func (c *Client) Do(ctx context.Context, r *Request) bool {
	if HasLeft(ctx) {
		r.Free()
		return false
	}
	r.began = time.Now()
	until := r.began.Add(c.Timeout)
	if at, ok := ctx.Deadline(); ok && at.Before(until) {
		until = at
	}
	r.until.Store(until.UnixMicro())
	q := c.router.queue(r.Keys[0])
	if !q.breaker.allow() {
		r.Free()
		return false
	}
	if answered, sent := q.alone(ctx, r); sent {
		return answered
	}
	return c.submit(q, r) && r.wait(ctx, max(time.Until(until), 1), q.patience)
}

// HasLeft reports whether a caller has left. The timer of its context may be late.
func HasLeft(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(at)
}

// Send sends a correction and does not wait; see [corrections].
func (c *Client) Send(r *Request) {
	r.oneWay = true
	for range 2 {
		if c.router.queue(r.Keys[0]).keep(r) {
			return
		}
	}
	c.lose(r, ErrClosed)
}

// submit queues r to its node; false: r is gone. The queue that was found may have been closed
// meanwhile, because its node has gone.
func (c *Client) submit(q *Node, r *Request) bool {
	if q.submit(r) || c.router.queue(r.Keys[0]).submit(r) {
		return true
	}
	r.Free()
	return false
}

// Execute sends requests past the queue and the breaker, as one call, and waits
// for the replies as long as for late ones. Only scripts that the server has lost
// are sent again. The error is the first request's.
func (c *Client) Execute(requests []*Request) error {
	cmds := newCommands(requests, false)
	c.run(cmds)
	for _, cmd := range cmds {
		cmd.deliver()
	}
	return requests[0].Err
}

func (c *Client) run(cmds []*Command) {
	ctx := deadline{c.ctx, time.Now().Add(c.ReplyTimeout())}
	c.transport.Do(ctx, cmds)
	var lost []*Command
	for i, cmd := range cmds {
		if Classify(cmd.err) == NoScript {
			cmds[i] = &Command{script: cmd.script, requests: cmd.requests, withSource: true, deadline: cmd.deadline}
			lost = append(lost, cmds[i])
		}
	}
	if len(lost) > 0 {
		c.transport.Do(ctx, lost)
	}
}

// load makes the node of a key know the scripts of the host: where it is far away, the first
// decisions would not wait for a second round trip. Scripts that no limit uses are sent again only
// after the node has lost one.
func (c *Client) load(key string, q *Node) error {
	var cmds []*Command
	used, others := c.host.Scripts()
	known := q.loaded.Load()
	if known {
		others = nil
	}
	for _, s := range append(used, others...) {
		r := NewRequest(s, key, Args{})
		defer r.Free()
		cmds = append(cmds, &Command{script: s, requests: []*Request{r}, deadline: longPast})
	}
	if len(cmds) > 0 {
		c.run(cmds)
	}
	q.loaded.Store(!slices.ContainsFunc(cmds, func(cmd *Command) bool { return cmd.err != nil || known && cmd.withSource }))
	for _, cmd := range cmds[:len(used)] {
		if cmd.err != nil {
			return cmd.err
		}
	}
	return nil
}

// longPast is a deadline with which a script does nothing.
const longPast = "d1"

// Ping reaches every node, and opens the connections that its distance needs. The error says
// why decisions would be local.
func (c *Client) Ping() error {
	if c.transport.Cluster() || c.router.slots.Load() != nil {
		c.router.load("")
	}
	for key, q := range c.router.sampleKeys() {
		if err := q.breaker.writeProbe(key); err != nil {
			return err
		}
		if err := c.load(key, q); err != nil {
			return err
		}
		q.warm(key)
		if d := q.trips.distance(); d > c.Timeout {
			return fmt.Errorf("answers take %v, the timeout is %v: limits would be local", d, c.Timeout)
		}
	}
	return c.router.learn()
}

// Node returns the queue to the node of a key.
func (c *Client) Node(key string) *Node { return c.router.queue(key) }

// Nodes returns the nodes that are in use.
func (c *Client) Nodes() []*Node { return c.router.queues() }

// together reports whether keys of several tags are decided in one step.
func (c *Client) together() bool { return c.router.keys.Load() == together }

// SameStep reports whether two keys can be decided in one step.
func (c *Client) SameStep(a, b string) bool { return c.together() || tagOf(a) == tagOf(b) }

// Lost is the number of corrections that were given up.
func (c *Client) Lost() int64 { return c.lost.Load() }

// Running ends when Stop begins.
func (c *Client) Running() context.Context { return c.running }

// Sleep waits. It reports false if the client is stopped meanwhile.
func (c *Client) Sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.running.Done():
		return false
	}
}

// Background runs f on a goroutine that Stop waits for. It reports false after Stop.
func (c *Client) Background(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return false
	}
	c.goroutines.Go(f)
	return true
}

// Stop ends the background work. What is sent is still answered, for ReplyTimeout.
func (c *Client) Stop() {
	c.mu.Lock()
	c.closed.Store(true)
	c.mu.Unlock()
	time.AfterFunc(c.ReplyTimeout(), c.cancel)
	c.stop()
	c.goroutines.Wait()
}

// Close waits until nothing is on the wire. Stop has been called.
func (c *Client) Close() {
	c.router.close()
	c.cancel()
}

// Closed reports whether Stop has begun.
func (c *Client) Closed() bool { return c.closed.Load() }
