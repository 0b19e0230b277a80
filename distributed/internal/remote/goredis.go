package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// goRedis is the transport on a client of go-redis.
type goRedis struct {
	client  redis.UniversalClient
	bounded *redis.Client // client with a shorter timeout, on the same connections; nil if it is none of a single server
}

// GoRedis returns the transport on a client of go-redis.
func GoRedis(client redis.UniversalClient) Transport { return goRedis{client: client} }

// within bounds how long a connection without a reply is held; of a client with hooks, which another
// timeout would lose, its own timeout does.
func (g goRedis) within(d time.Duration) goRedis {
	if c, is := g.client.(*redis.Client); is && !hooked(c) {
		if own := c.Options().ReadTimeout; own > 0 {
			d = min(d, own)
		}
		g.bounded = c.WithTimeout(d)
	}
	return g
}

// dial dials a single server once: a command would let go-redis dial five times where it refuses connections. The
// hooks of a client must see each dial, so for one with hooks it does nothing.
func (g goRedis) dial(ctx context.Context, d time.Duration) error {
	c, is := g.client.(*redis.Client)
	if !is || hooked(c) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	conn, err := c.Options().Dialer(ctx, c.Options().Network, c.Options().Addr)
	if err == nil {
		_ = conn.Close()
	}
	if ctx.Err() != nil { // slow is not refused
		return nil
	}
	return err
}

// renew takes all idle connections to the node of key at once: those without a reply within d
// are closed. A balancer that was restarted leaves them silent.
func (g goRedis) renew(ctx context.Context, key string, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, 2*d)
	defer cancel()
	node := g.node(ctx, key)
	if node == nil {
		return
	}
	quick, idle := node.WithTimeout(d), min(int(node.PoolStats().IdleConns), maxRenewed)
	var group sync.WaitGroup
	for range idle {
		group.Go(func() { _ = quick.Process(ctx, once{redis.NewIntSliceCmd(ctx, "time")}) })
	}
	group.Wait()
}

const maxRenewed = 256

// node is the client of one node, nil if there is none.
func (g goRedis) node(ctx context.Context, key string) (node *redis.Client) {
	switch c := g.client.(type) {
	case *redis.Client:
		return c
	case *redis.ClusterClient:
		node, _ = c.MasterForKey(ctx, key)
	case *redis.Ring:
		node, _ = c.GetShardClientForKey(key)
	}
	return node
}

// Cluster is false for a client that another type wraps: the first reply that
// rejects keys of several slots, or the map of slots, will tell.
func (g goRedis) Cluster() bool {
	_, is := g.client.(*redis.ClusterClient)
	return is
}

// ring returns a function from a key to the address of its shard in a Ring; nil for
// other clients.
func (g goRedis) ring() func(key string) string {
	r, is := g.client.(*redis.Ring)
	if !is {
		return nil
	}
	return func(key string) string {
		if c, err := r.GetShardClientForKey(key); err == nil {
			return c.Options().Addr
		}
		return "" // no shard is up: the breaker of its queue will open
	}
}

func (g goRedis) Do(ctx context.Context, cmds []*Command) {
	client := g.client
	if g.bounded != nil {
		client = g.bounded
	}
	if len(cmds) == 1 {
		c := once{redis.NewIntSliceCmd(ctx, cmds[0].words()...)}
		c.SetFirstKeyPos(3)
		_ = client.Process(ctx, c)
		cmds[0].Done(c.outcome())
		return
	}
	sent := make([]once, len(cmds))
	pipe := client.Pipeline()
	for i, c := range cmds {
		sent[i] = once{redis.NewIntSliceCmd(ctx, c.words()...)}
		sent[i].SetFirstKeyPos(3)
		_ = pipe.Process(ctx, sent[i])
	}
	_, err := pipe.Exec(ctx)
	for i, c := range cmds {
		if sent[i].Val() == nil && sent[i].Err() == nil { // go-redis says so of no command if the server rejects the connection
			sent[i].SetErr(err)
		}
		c.Done(sent[i].outcome())
	}
}

// once is a command that go-redis sends once: it repeats failed commands three times
// by default, unless the command forbids it. It still follows a cluster's
// redirections, which come instead of an execution.
type once struct{ *redis.IntSliceCmd }

// NoRetry forbids go-redis to repeat the command.
func (once) NoRetry() bool { return true }

// Clone keeps NoRetry.
func (c once) Clone() redis.Cmder { return once{c.IntSliceCmd.Clone().(*redis.IntSliceCmd)} }

func (c once) outcome() ([]int64, error) {
	reply, err := c.Result()
	if err == nil {
		return reply, nil
	}
	return nil, inOurWords(err)
}

// inOurWords replaces errors of go-redis by errors of this package.
func inOurWords(err error) error {
	var said redis.Error
	switch {
	case errors.As(err, &said):
		return ReplyError(said.Error())
	case errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("%w: %w", errClientClosed, err)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return err
}

// Slots reads the map of slots, from the client's own source if it has one. The
// client follows redirections, but does not load its map again for commands that it must
// not repeat.
func (g goRedis) Slots(ctx context.Context, failed string) ([]SlotRange, error) {
	if c, ok := g.client.(interface{ ReloadState(context.Context) }); ok && failed != "" {
		c.ReloadState(ctx)
	}
	slots, err := g.clusterSlots(ctx)
	if err != nil {
		return nil, err
	}
	ranges, master, n := make([]SlotRange, len(slots)), "", slot(failed)
	for i, s := range slots {
		ranges[i] = SlotRange{First: s.Start, Last: s.End}
		if len(s.Nodes) > 0 {
			ranges[i].Addr = s.Nodes[0].Addr
		}
		if s.Start <= n && n <= s.End {
			master = ranges[i].Addr
		}
	}
	if failed != "" {
		g.await(ctx, failed, master)
	}
	return ranges, nil
}

func (g goRedis) clusterSlots(ctx context.Context) ([]redis.ClusterSlot, error) {
	if c, ok := g.client.(*redis.ClusterClient); ok && c.Options().ClusterSlots != nil {
		return c.Options().ClusterSlots(ctx)
	}
	return g.client.ClusterSlots(ctx).Result()
}

// await waits until the client, which reloads its map on its own, sends the key to
// the node at addr.
func (g goRedis) await(ctx context.Context, key, addr string) {
	const pause, tries = 10 * time.Millisecond, 50
	c, ok := g.client.(interface {
		MasterForKey(context.Context, string) (*redis.Client, error)
	})
	for range tries {
		if !ok || ctx.Err() != nil {
			return
		}
		if node, err := c.MasterForKey(ctx, key); err == nil && node.Options().Addr == addr {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
