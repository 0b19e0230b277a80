// Package remote sends scripts to Redis in batches, with one queue and one breaker for each
// node. It refunds the charges of late replies and keeps corrections through an outage.
// It does not depend on the kinds of limits.
package remote

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Client sends a host's requests to Redis.
type Client struct {
	Config
	transport Transport
	host      Host
	router    *router
	ctx       context.Context // of the commands; ends with Close
	cancel    context.CancelFunc

	running    context.Context // of the background work; ends when Stop begins
	stop       context.CancelFunc
	mu         sync.Mutex // so that no background work begins after closed is set
	closed     atomic.Bool
	goroutines sync.WaitGroup
	lost       atomic.Int64 // corrections
}

// Config holds the settings of a Client.
type Config struct {
	Timeout       time.Duration // of a decision
	ProbeInterval time.Duration // the least time between two probes of a node
	Prefix        string        // of the keys that sample the nodes
}

// Host owns a Client: it supplies the probes and the scripts, and receives the reports. Its
// methods must be quick, because requests wait for them.
type Host interface {
	// Probe returns the requests that check n: the first one writes under key, which n
	// serves. Probed receives all of them with their replies if the first one succeeded.
	Probe(key string, n *Node) []*Request
	Probed(probes []*Request)
	// Parted asks Redis whether keys of several tags must be decided apart.
	Parted() (bool, error)
	// Scripts returns the scripts that decisions run, and others that they may run later.
	Scripts() (used, others []*Script)

	// Failed receives the failure of a command, after which decisions are local.
	Failed(f Failure, err error)
	// Lost receives the loss of a correction; name, of its limit, may be empty.
	Lost(name string, total int64, err error)
	// ProcessLate receives the delay of this process that made a reply late.
	ProcessLate(lag time.Duration)
	// Far receives the round trips of a node that take longer than the timeout.
	Far(addr string, median, p99 time.Duration)
	// Changed receives the level of a node's breaker: open (percent 0), recovering (below
	// 100) or closed (100).
	Changed(addr string, percent int, err error)
}

// FullLevel is the percentage of the calls that go to a healthy node.
const FullLevel = 100

// New makes a Client and does not dial.
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

// ReplyTimeout returns how long the client waits for a late reply, to refund its charge.
func (c *Config) ReplyTimeout() time.Duration { return max(time.Second, 10*c.Timeout) }

// Do sends r and waits for the reply. It reports true if r has a reply, which may be an
// error, and belongs to the caller; otherwise r is gone.
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
	n := c.router.nodeOf(r.Keys[0])
	if !n.breaker.allow() {
		r.Free()
		return false
	}
	if answered, sent := n.alone(ctx, r); sent {
		return answered
	}
	return c.submit(n, r) && r.wait(ctx, max(time.Until(until), 1), n.patience)
}

// HasLeft reports whether ctx has ended or its deadline has passed: its timer may be late.
func HasLeft(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(at)
}

// Send queues the correction r and does not wait; see [corrections].
func (c *Client) Send(r *Request) {
	r.oneWay = true
	for range 2 {
		if c.router.nodeOf(r.Keys[0]).keep(r) {
			return
		}
	}
	c.lose(r, ErrClosed)
}

// submit queues r at n or, if n has been closed meanwhile, at the node that now serves the key.
// It reports false if r is gone.
func (c *Client) submit(n *Node, r *Request) bool {
	if n.submit(r) || c.router.nodeOf(r.Keys[0]).submit(r) {
		return true
	}
	r.Free()
	return false
}

// Execute sends requests past the queue and the breaker, as one call, and waits
// up to ReplyTimeout. It repeats only commands whose script the server has lost.
// The error is the first request's.
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

// load loads the scripts of the host into n, the node of key: if n is far away, the first decisions
// have no time for a second round trip. It repeats scripts that no limit uses only after n has lost
// one.
func (c *Client) load(key string, n *Node) error {
	var cmds []*Command
	used, others := c.host.Scripts()
	known := n.loaded.Load()
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
	n.loaded.Store(!slices.ContainsFunc(cmds, func(cmd *Command) bool { return cmd.err != nil || known && cmd.withSource }))
	for _, cmd := range cmds[:len(used)] {
		if cmd.err != nil {
			return cmd.err
		}
	}
	return nil
}

// longPast is a deadline that has passed, so that a script does nothing.
const longPast = "d1"

// Ping probes every node, loads its scripts and opens the connections that its distance needs.
// The error names the reason why decisions would be local.
func (c *Client) Ping() error {
	if c.transport.Cluster() || c.router.slots.Load() != nil {
		c.router.load("")
	}
	for key, n := range c.router.sampleKeys() {
		if err := n.breaker.writeProbe(key); err != nil {
			return err
		}
		if err := c.load(key, n); err != nil {
			return err
		}
		n.warm(key)
		if d := n.trips.distance(); d > c.Timeout {
			return fmt.Errorf("answers take %v, the timeout is %v: limits would be local", d, c.Timeout)
		}
	}
	return c.router.learn()
}

// Node returns the node of key.
func (c *Client) Node(key string) *Node { return c.router.nodeOf(key) }

// Nodes returns the nodes that are in use.
func (c *Client) Nodes() []*Node { return c.router.nodesInUse() }

// together reports whether keys of several tags can be decided in one step.
func (c *Client) together() bool { return c.router.keys.Load() == together }

// SameStep reports whether two keys can be decided in one step.
func (c *Client) SameStep(a, b string) bool { return c.together() || tagOf(a) == tagOf(b) }

// Lost returns the number of lost corrections.
func (c *Client) Lost() int64 { return c.lost.Load() }

// Running returns a context that ends when Stop begins.
func (c *Client) Running() context.Context { return c.running }

// Sleep waits for d. It reports false if Stop begins meanwhile.
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

// Stop ends the background work. Commands on the wire may still finish, for ReplyTimeout.
func (c *Client) Stop() {
	c.mu.Lock()
	c.closed.Store(true)
	c.mu.Unlock()
	time.AfterFunc(c.ReplyTimeout(), c.cancel)
	c.stop()
	c.goroutines.Wait()
}

// Close waits until nothing is on the wire. Call Stop first.
func (c *Client) Close() {
	c.router.close()
	c.cancel()
}

// Closed reports whether Stop has begun.
func (c *Client) Closed() bool { return c.closed.Load() }
