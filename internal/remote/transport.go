package remote

import (
	"context"
	"errors"
)

// Transport carries commands to Redis; package distributed documents its methods.
type Transport interface {
	Do(ctx context.Context, cmds []*Command)
	Cluster() bool
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

// Timed ends the context of each call at its deadline. A client's own has no timer, which
// go-redis does not need.
func Timed(t Transport) Transport { return timed{t} }

type timed struct{ Transport }

func (t timed) Do(ctx context.Context, cmds []*Command) {
	if at, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at)
		defer cancel()
	}
	t.Transport.Do(ctx, cmds)
}
