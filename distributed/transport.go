package distributed

import (
	"context"

	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// Transport carries the commands of a store to Redis. [New] has one for the clients of
// go-redis, github.com/sluice-go/sluice/distributed/rueidisstore one for rueidis. It must be
// safe for concurrent use.
type Transport interface {
	// Do sends the commands, in one round trip if it can, and calls [Command.Done] for each
	// before it returns. It repeats a command only after a redirection of a cluster or
	// another reply that says that the command was not executed.
	//
	// Do waits for a reply until ctx ends, and never less: the store refunds charges whose
	// replies are too late for their callers. ctx ends after ten times the store's
	// timeout, at least a second.
	Do(ctx context.Context, cmds []*Command)

	// Cluster reports whether the keys of a command must be in one slot of a cluster.
	Cluster() bool

	// Slots returns the masters of the cluster; none if there is no cluster. If failed, a
	// key whose node has failed, is not empty, it also reloads the client's own map of
	// slots, and returns when the client uses it.
	Slots(ctx context.Context, failed string) ([]SlotRange, error)
}

// Command is one run of a script, which a [Transport] sends to Redis. Never send it twice:
// the first run may have charged although its reply was lost.
type Command remote.Command

// Words returns the words to send: EVALSHA or EVAL, the script, the number of keys, the
// keys and the arguments. words[3 : 3+keys] are the keys, which select the node of a
// cluster.
func (c *Command) Words() (words []string, keys int) { return (*remote.Command)(c).Words() }

// Done stores the reply, an array of integers, or the error: a [ReplyError], one that wraps
// [ErrNotSent], or any other, after which it is unknown whether Redis executed the command.
// A transport calls it once for each command.
func (c *Command) Done(reply []int64, err error) { (*remote.Command)(c).Done(reply, err) }

// carrier adapts a user's Transport, and ends the context of each call at its deadline.
type carrier struct{ Transport }

func (c carrier) Do(ctx context.Context, cmds []*remote.Command) {
	if at, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at)
		defer cancel()
	}
	public := make([]*Command, len(cmds))
	for i, cmd := range cmds {
		public[i] = (*Command)(cmd)
	}
	c.Transport.Do(ctx, public)
}

// SlotRange is a range of a cluster's slots, First to Last (0 to 16383), and Addr, the address of
// their master; empty without a master.
type SlotRange = remote.SlotRange

// ReplyError is the text of the server's error reply, such as "OOM command not
// allowed". A [Transport] passes it to [Command.Done].
type ReplyError = remote.ReplyError

// ErrNotSent marks a command that was certainly not executed, for example because no
// connection was free: a [Transport] passes an error that wraps it to [Command.Done].
// Failures to dial need no wrapping.
var ErrNotSent = remote.ErrNotSent
