package distributed

import (
	"context"

	"github.com/sluice-go/sluice/internal/remote"
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

// Command is one run of a script, which a [Transport] sends to Redis. It must never be sent
// twice: the first run may have charged although its reply was lost.
//
// Words() ([]string, int) returns the command as it is sent, and the number of its keys, which
// follow the third word and decide which node of a cluster it is for. Done([]int64, error) gives
// it its reply, an array of integers, or its error: a [ReplyError], one that wraps [ErrNotSent],
// or any other, after which it is unknown whether the command was executed. A transport calls
// Done once for each command.
type Command = remote.Command

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
