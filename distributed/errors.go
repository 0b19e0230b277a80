package distributed

import (
	"errors"

	"github.com/sluice-go/sluice/distributed/internal/remote"
)

// ErrClosed reports that the store or the limit has been closed.
var ErrClosed = remote.ErrClosed

// ErrUnavailable reports that a call that needs Redis, such as Reset or Ban, did
// not reach it or had no reply in time. Redis may have executed it nevertheless.
var ErrUnavailable = errors.New("distributed: Redis is unavailable")

var errWrongType = errors.New("distributed: a key holds the value of another algorithm, format or program: give each limit its own name, or see WithPrefix")

var errNoReply = errors.New("no reply")
