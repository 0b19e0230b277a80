package distributed

import (
	"context"

	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// Transport carries the commands of a store to Redis. [New] has one for the clients of
// go-redis; a module of its own has one for rueidis: see
// github.com/sluice-go/sluice/distributed/rueidisstore. It is safe for concurrent use.
type Transport interface {
	// Do sends the commands, in one round trip if it can, and returns when each is
	// [Command.Done]. It never repeats a command on its own, except after a
	// redirection of a cluster or another reply that says that it was not executed.
	//
	// It waits for a reply until ctx ends, and never shorter: charges whose replies
	// come too late for their callers are given back. ctx ends after ten times the
	// store's timeout, at least a second.
	Do(ctx context.Context, cmds []*Command)

	// Cluster reports whether the keys of a command must be in one slot of a cluster.
	Cluster() bool

	// Slots returns the masters of the cluster; none if there is no cluster. After the
	// node of the key failed has failed, it also loads the client's own map of slots,
	// and returns when the client uses it; without a failed node failed is empty.
	Slots(ctx context.Context, failed string) ([]SlotRange, error)
}

// Command is one run of a script, which a [Transport] sends to Redis. It must never be
// sent twice: the first run may have charged although its reply was lost.
type Command remote.Command

// Words returns the command as it is sent: EVALSHA or EVAL, the script, the number of
// keys, the keys and the arguments. All keys are in words[3 : 3+keys]; they decide which node
// of a cluster it is for.
func (c *Command) Words() (words []string, keys int) { return (*remote.Command)(c).Words() }

// Done gives the command its reply, an array of integers, or its error: a [ReplyError],
// one that wraps [ErrNotSent], or any other, after which it is unknown whether the command
// was executed. A transport calls it once for each command.
func (c *Command) Done(reply []int64, err error) { (*remote.Command)(c).Done(reply, err) }

// carrier is the way of a user's transport: each call's context ends at its deadline.
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

// SlotRange is slots of a cluster, from First to Last (0 to 16383), that one master serves. Its
// Addr is empty if there is none.
type SlotRange = remote.SlotRange

// ReplyError is an error reply of the server as it came, such as "OOM command not
// allowed". A [Transport] gives it to [Command.Done].
type ReplyError = remote.ReplyError

// ErrNotSent is wrapped by the error that a [Transport] gives to a command that has
// certainly not been executed, for example because no connection was free. Failures to
// dial need no wrapping.
var ErrNotSent = remote.ErrNotSent
