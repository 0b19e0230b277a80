// Package rueidisstore keeps the limits of package distributed on a client of
// github.com/redis/rueidis: a single server, Sentinel or Cluster, of Redis or Valkey.
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{
//		InitAddress:  []string{"localhost:6379"},
//		DisableCache: true, // nothing here is cached; without it the user needs the right CLIENT TRACKING
//	})
//	...
//	store, err := rueidisstore.New(client)
//	perUser, err := store.TokenBucket("user", algo.PerMinute(100))
//
// Everything else is as on go-redis, and the same tests run on both. rueidis differs in two
// ways: NewClient fails while Redis is away, so use go-redis for a service that must start
// without Redis; and all callers share one connection to each node, so a connection that
// breaks makes all decisions in flight local.
//
// Do not use it in a program that has go-redis already: one client is enough.
package rueidisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/sluice-go/sluice/distributed"
)

// New makes a store on client. The caller closes the client, after the store. Only the
// options can cause an error.
func New(client rueidis.Client, opts ...distributed.Option) (*distributed.Store, error) {
	if client == nil {
		return nil, errors.New("rueidisstore: the client is nil")
	}
	return distributed.NewWithTransport(transport{client}, opts...)
}

// transport sends commands by rueidis, which repeats only commands that are marked as
// read-only, and follows redirections.
type transport struct{ client rueidis.Client }

func (t transport) Cluster() bool { return t.client.Mode() == rueidis.ClientModeCluster }

func (t transport) Do(ctx context.Context, cmds []*distributed.Command) {
	built := make([]rueidis.Completed, len(cmds))
	for i, c := range cmds {
		words, keys := c.Words()
		built[i] = t.client.B().Arbitrary(words[:3]...).Keys(words[3 : 3+keys]...).Args(words[3+keys:]...).Build()
	}
	for i, result := range t.client.DoMulti(ctx, built...) {
		reply, err := result.AsIntSlice()
		cmds[i].Done(reply, inOurWords(err))
	}
}

// inOurWords translates errors of rueidis into errors of package distributed.
func inOurWords(err error) error {
	if reply, is := rueidis.IsRedisErr(err); is {
		return distributed.ReplyError(reply.Error())
	}
	if errors.Is(err, rueidis.ErrNoSlot) {
		return distributed.ReplyError("CLUSTERDOWN Hash slot not served") // as a node would say
	}
	return err
}

// Slots asks a node for the map. rueidis reloads its own when a connection fails
// or a node redirects it.
func (t transport) Slots(ctx context.Context, _ string) ([]distributed.SlotRange, error) {
	ranges, err := t.client.Do(ctx, t.client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return nil, err
	}
	slots := make([]distributed.SlotRange, len(ranges))
	for i, r := range ranges {
		if slots[i], err = slotRange(r); err != nil {
			return nil, fmt.Errorf("rueidisstore: CLUSTER SLOTS: %w", err)
		}
	}
	return slots, nil
}

// slotRange parses first, last, and the master, which begins with host and port.
func slotRange(m rueidis.RedisMessage) (r distributed.SlotRange, err error) {
	fields, err := m.ToArray()
	if err != nil || len(fields) < 3 {
		return r, errors.Join(err, fmt.Errorf("%d fields", len(fields)))
	}
	first, err1 := fields[0].AsInt64()
	last, err2 := fields[1].AsInt64()
	master, err3 := fields[2].ToArray()
	if err := errors.Join(err1, err2, err3); err != nil || len(master) < 2 {
		return r, errors.Join(err, fmt.Errorf("a master of %d fields", len(master)))
	}
	host, _ := master[0].ToString() // null: the node does not know its name
	port, err := master[1].AsInt64()
	return distributed.SlotRange{First: int(first), Last: int(last), Addr: net.JoinHostPort(host, strconv.FormatInt(port, 10))}, err
}
