package distributed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrClosed reports that the store or the limit has been closed.
var ErrClosed = errors.New("distributed: the store or the limit is closed")

// failure is the meaning of an error from Redis for the command that met it.
type failure uint8

const (
	noFailure failure = iota
	// notExecuted: the server has certainly not executed the command; another
	// connection or node may.
	notExecuted
	// rejected: the server has not executed the command and would reject it
	// again: it is out of memory, busy with a script, or unable to save.
	rejected
	// unknownOutcome: the connection broke, or no reply came in time. The
	// command may have been executed, so sending it again could charge twice.
	unknownOutcome
	// misconfigured: an operator must act: credentials, rights, or a server
	// that does not know the command.
	misconfigured
	// keyFault: the keys of the command are at fault, not Redis: they have
	// another type, or are in several slots, or in one that is being moved or has
	// no node.
	keyFault
	// noScript: the server has lost its scripts.
	noScript
	// The others are no errors of a command: instances use one name for different
	// limits, a settlement changes nothing, this process is late itself, replies take longer than the timeout.
	mixedParameters
	wrongSettlement
	processLate
	farAway
	correctionLost

	failures // the number of kinds
)

// String names the failure for logs.
func (f failure) String() string {
	return [...]string{"none", "not executed", "rejected", "no reply", "misconfigured", "key fault", "no script", "mixed parameters", "wrong settlement", "process late", "far away", "correction lost"}[f]
}

// prefixes of the server's error replies. A script that meets an error in one
// of its own commands wraps it; before Redis 7 the code is in the middle,
// after a dash.
var prefixes = []struct {
	code string
	is   failure
}{
	{"NOSCRIPT", noScript},
	{"LOADING", notExecuted},
	{"READONLY", notExecuted},
	{"CLUSTERDOWN Hash slot not served", keyFault},
	{"CLUSTERDOWN", notExecuted},
	{"TRYAGAIN", keyFault},
	{"MASTERDOWN", notExecuted},
	{"MOVED", notExecuted},
	{"ASK", notExecuted},
	{"max number of clients", notExecuted},
	{"OOM", rejected},
	{"MISCONF", rejected},
	{"BUSY", rejected},
	{"NOREPLICAS", rejected},
	{"WRONGTYPE", keyFault},
	{"CROSSSLOT", keyFault},
	{"NOAUTH", misconfigured},
	{"WRONGPASS", misconfigured},
	{"NOPERM", misconfigured},
}

func classify(err error) failure {
	if err == nil {
		return noFailure
	}
	return classifyError(err)
}

func classifyError(err error) failure {
	var reply ReplyError
	var dial *net.OpError
	switch {
	case errors.As(err, &reply):
		return classifyReply(string(reply))
	case errors.Is(err, errClientClosed), errors.Is(err, errReply):
		return misconfigured
	case errors.Is(err, ErrNotSent), errors.Is(err, errExpired):
		return notExecuted
	case errors.As(err, &dial) && dial.Op == "dial":
		return notExecuted
	}
	return unknownOutcome
}

func classifyReply(text string) failure {
	text = strings.TrimPrefix(text, "ERR ")
	if strings.Contains(text, "nonexistent global variable") || strings.Contains(text, "attempt to call") {
		return keyFault // of one script, on a server with another Lua
	}
	for _, p := range prefixes {
		if strings.HasPrefix(text, p.code) || strings.Contains(text, "-"+p.code+" ") {
			return p.is
		}
	}
	return misconfigured
}

// passing reports a key fault that is over in a moment: a part of the keys of a
// slot has been moved.
func passing(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN")
}

func severalSlots(err error) bool {
	return err != nil && strings.Contains(err.Error(), "CROSSSLOT")
}

// errLate is the failure of a batch whose reply does not come in time.
var errLate = fmt.Errorf("distributed: no reply within the timeout: %w", context.DeadlineExceeded)

// errExpired is the failure of a command that reached the server after its callers had gone.
var errExpired = errors.New("distributed: the command came too late and was not executed")

// errReply reports a reply that no script of this package gives: the commands
// do not reach a Redis server.
var errReply = errors.New("distributed: unexpected reply to a script: is the address a Redis server?")
