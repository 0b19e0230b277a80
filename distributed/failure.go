package distributed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrClosed reports that the store has been closed.
var ErrClosed = errors.New("distributed: the store is closed")

// failure says what an error from Redis means for the command that met it.
type failure uint8

const (
	// fine: no error.
	fine failure = iota
	// unsent: the server has certainly not executed the command, and another
	// connection or another node may.
	unsent
	// refused: the server has not executed it, and would not the next time:
	// out of memory, busy with a script, unable to save.
	refused
	// unknown: the connection broke, or nothing came in time. It may have been
	// executed, so sending it again could charge twice.
	unknown
	// misconfigured: nobody but a person can mend it: credentials, rights, a
	// server that does not know the command.
	misconfigured
	// fault: of these keys, not of Redis.
	fault
	// noScript: the server has lost its scripts.
	noScript
)

// String names the failure for logs.
func (f failure) String() string {
	return [...]string{"fine", "not executed", "refused", "no answer", "misconfigured", "key fault", "no script"}[f]
}

// prefixes of the server's error replies. A script that meets an error in one
// of its own commands wraps it; before Redis 7 the code then stands in the
// middle, after a dash.
var prefixes = []struct {
	code string
	is   failure
}{
	{"NOSCRIPT", noScript},
	{"LOADING", unsent},
	{"READONLY", unsent},
	{"CLUSTERDOWN", unsent},
	{"TRYAGAIN", unsent},
	{"MASTERDOWN", unsent},
	{"MOVED", unsent},
	{"ASK", unsent},
	{"max number of clients", unsent},
	{"OOM", refused},
	{"MISCONF", refused},
	{"BUSY", refused},
	{"NOREPLICAS", refused},
	{"WRONGTYPE", fault},
	{"CROSSSLOT", fault},
	{"NOAUTH", misconfigured},
	{"WRONGPASS", misconfigured},
	{"NOPERM", misconfigured},
}

func classify(err error) failure {
	var reply redis.Error
	var dial *net.OpError
	switch {
	case err == nil:
		return fine
	case errors.As(err, &reply):
		return classifyReply(reply.Error())
	case errors.Is(err, redis.ErrClosed), errors.Is(err, errReply):
		return misconfigured
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return unsent
	case errors.As(err, &dial) && dial.Op == "dial":
		return unsent
	}
	return unknown
}

func classifyReply(text string) failure {
	text = strings.TrimPrefix(text, "ERR ")
	for _, p := range prefixes {
		if strings.HasPrefix(text, p.code) || strings.Contains(text, "-"+p.code+" ") {
			return p.is
		}
	}
	return misconfigured
}

// errLate is what the breaker hears of a reply that did not come in time.
var errLate = fmt.Errorf("distributed: no reply in time: %w", context.DeadlineExceeded)

// errReply is an answer that no script of ours gives: the commands do not
// reach a Redis server.
var errReply = errors.New("distributed: the reply does not have the form that the script gives it")
