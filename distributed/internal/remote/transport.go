package remote

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/internal/warning"
)

// Transport carries commands to Redis; package distributed documents its methods. The context
// of Do has a deadline, and is canceled only with the client.
type Transport interface {
	Do(ctx context.Context, cmds []*Command)
	Cluster() bool
	Slots(ctx context.Context, failed string) ([]SlotRange, error)
}

// SlotRange is a range of a cluster's slots that one master serves.
type SlotRange struct {
	First, Last int    // inclusive, 0 to 16383
	Addr        string // of the master; empty if there is none
}

// ReplyError is the text of the server's error reply.
type ReplyError string

// Error returns at most the first 256 bytes.
func (e ReplyError) Error() string { return warning.Clip(string(e), warning.Longest) }

// ErrNotSent marks the error of a command that has certainly not been executed.
var ErrNotSent = errors.New("distributed: the command was not sent")

// errClientClosed reports that the caller closed the client before the store.
var errClientClosed = errors.New("distributed: the client of Redis is closed")
