package distributed

import (
	"context"
	"errors"
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

// SlotRange is slots of a cluster, from First to Last, that one master serves.
type SlotRange struct {
	First, Last int    // 0 to 16383
	Addr        string // of the master; empty if there is none
}

// ReplyError is an error reply of the server as it came, such as "OOM command not
// allowed". A [Transport] gives it to [Command.Done].
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// ErrNotSent is wrapped by the error that a [Transport] gives to a command that has
// certainly not been executed, for example because no connection was free. Failures to
// dial need no wrapping.
var ErrNotSent = errors.New("distributed: the command was not sent")

// errClientClosed reports that the caller has closed the client before the store.
var errClientClosed = errors.New("distributed: the client of Redis is closed")

// timed ends the context of each call at its deadline. The store's own has no timer,
// which go-redis does not need.
type timed struct{ Transport }

func (t timed) Do(ctx context.Context, cmds []*Command) {
	if at, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at)
		defer cancel()
	}
	t.Transport.Do(ctx, cmds)
}
