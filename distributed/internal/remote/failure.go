package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrClosed reports that the client has been closed.
var ErrClosed = errors.New("distributed: the store or the limit is closed")

// Failure classifies an error from Redis by its consequence for the command.
type Failure uint8

// The failures.
const (
	// NoFailure: the command succeeded.
	NoFailure Failure = iota
	// NotExecuted: the server certainly did not execute the command; another
	// connection or node may.
	NotExecuted
	// Rejected: the server did not execute the command and would reject it
	// again: it is out of memory, busy with a script, or unable to save.
	Rejected
	// UnknownOutcome: the connection broke, or no reply came in time. The
	// command may have been executed, so sending it again could charge twice.
	UnknownOutcome
	// Misconfigured: an operator must correct credentials, rights, or a server
	// that does not support the command.
	Misconfigured
	// KeyFault: Redis works, but not for the keys of the command: they have
	// another type, or are in several slots, or in one that is being moved or has
	// no node.
	KeyFault
	// NoScript: the server has lost its scripts.
	NoScript
)

// String names the failure for logs.
func (f Failure) String() string {
	return [...]string{"none", "not executed", "rejected", "no reply", "misconfigured", "key fault", "no script"}[f]
}

// prefixes classifies the server's error replies. An error of a command inside a
// script is wrapped: before Redis 7 the code is in the middle, after a dash.
// Others, such as NOAUTH and NOPERM, are Misconfigured.
var prefixes = []struct {
	is    Failure
	codes []string
}{
	{NoScript, []string{"NOSCRIPT"}},
	{KeyFault, []string{"CLUSTERDOWN Hash slot not served", "TRYAGAIN", "WRONGTYPE", "CROSSSLOT"}},
	{NotExecuted, []string{"LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "MOVED", "ASK", "max number of clients"}},
	{Rejected, []string{"OOM", "MISCONF", "BUSY", "NOREPLICAS"}},
}

// Classify returns the Failure of err.
func Classify(err error) Failure {
	if err == nil {
		return NoFailure
	}
	var reply ReplyError
	var dial *net.OpError
	switch {
	case errors.As(err, &reply):
		return classifyReply(string(reply))
	case errors.Is(err, errClientClosed), errors.Is(err, errReply):
		return Misconfigured
	case errors.Is(err, ErrNotSent), errors.Is(err, errExpired):
		return NotExecuted
	case errors.As(err, &dial) && dial.Op == "dial":
		return NotExecuted
	}
	return UnknownOutcome
}

func classifyReply(text string) Failure {
	text = strings.TrimPrefix(text, "ERR ")
	if strings.Contains(text, "nonexistent global variable") || strings.Contains(text, "attempt to call") {
		return KeyFault // of one script, on a server with another Lua
	}
	for _, p := range prefixes {
		for _, code := range p.codes {
			if strings.HasPrefix(text, code) || strings.Contains(text, "-"+code+" ") {
				return p.is
			}
		}
	}
	return Misconfigured
}

// passing reports whether err is a key fault that passes: a part of the keys of a
// slot has been moved.
func passing(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN")
}

// SeveralSlots reports whether err says that the keys are in several slots of a cluster.
func SeveralSlots(err error) bool {
	return err != nil && strings.Contains(err.Error(), "CROSSSLOT")
}

// errLate reports a batch without a reply in time.
var errLate = fmt.Errorf("distributed: no reply within the timeout: %w", context.DeadlineExceeded)

// errExpired reports a command that reached the server after its callers had left.
var errExpired = errors.New("distributed: the command came too late and was not executed")

// errReply reports a reply that is not one of this package's scripts.
var errReply = errors.New("distributed: unexpected reply to a script: is the address a Redis server?")
