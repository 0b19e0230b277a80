package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// goRedis is the Transport on a client of go-redis.
type goRedis struct {
	client  redis.UniversalClient
	bounded *redis.Client // client with a shorter timeout, on the same connections; nil: see within
}

// GoRedis returns a Transport on client.
func GoRedis(client redis.UniversalClient) Transport { return goRedis{client: client} }

// within limits the wait for a reply to d, on a client of a single server. A client with hooks
// keeps its own timeout, because a copy with another timeout would lose the hooks.
func (g goRedis) within(d time.Duration) goRedis {
	if c, is := g.client.(*redis.Client); is && !hooked(c) {
		if own := c.Options().ReadTimeout; own > 0 {
			d = min(d, own)
		}
		g.bounded = c.WithTimeout(d)
	}
	return g
}

// dial dials a single server once, because for a command go-redis dials a server that refuses
// connections five times. It does nothing for a client with hooks, which must see each dial.
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

// renew tries all idle connections to the node of key at once, and closes those without a reply
// within d: a load balancer that was restarted leaves them silent.
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

// node returns the client of the node of key; nil if there is none.
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

// Cluster returns false for a wrapped client of a cluster: the router learns it from
// the map of slots, or from the first reply that rejects keys of several slots.
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
		return "" // no shard is up: the breaker of this address will open
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
		if sent[i].Val() == nil && sent[i].Err() == nil { // go-redis sets no command's error if the server rejects the connection
			sent[i].SetErr(err)
		}
		c.Done(sent[i].outcome())
	}
}

// once is a command that go-redis does not retry; the default is three retries. go-redis
// still follows a cluster's redirections, which a server sends instead of executing.
type once struct{ *redis.IntSliceCmd }

// NoRetry forbids go-redis to retry the command.
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

// inOurWords translates errors of go-redis into errors of this package.
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

// Slots loads the map of slots, from the client's own source if it has one. After a failure
// it makes the client reload its map too, which go-redis does not do for a command with NoRetry.
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

// await waits until the client, which reloads its map in the background, sends key to addr.
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
