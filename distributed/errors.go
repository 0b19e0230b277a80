package distributed

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/internal/remote"
)

// ErrClosed reports that the store or the limit has been closed.
var ErrClosed = remote.ErrClosed

// ErrUnavailable reports that a call that cannot be decided locally, such as
// Reset or Ban, did not reach Redis, or had no reply in time: Redis may have
// executed it nevertheless.
var ErrUnavailable = errors.New("distributed: Redis is unavailable")

var errWrongType = errors.New("distributed: a key holds the value of another algorithm, format or program: give each limit its own name, or see WithPrefix")

var errNoReply = errors.New("no reply")

// execute sends a request that Redis must execute, for what of a name. After an error r is gone.
func (s *Store) execute(ctx context.Context, r *remote.Request, what, name string) error {
	if !s.remote.Do(ctx, r) {
		return fmt.Errorf("%w: %s %q: %w", ErrUnavailable, what, name, cmp.Or(ctx.Err(), errNoReply))
	}
	err := r.Err
	if err != nil {
		err = fmt.Errorf("%w: %s %q: %w", ErrUnavailable, what, name, err)
	}
	for i := 0; i < len(r.Keys) && err == nil; i++ {
		if r.Answer(i).Flag() == flagWrongType {
			err = fmt.Errorf("%s %q: %w", what, name, errWrongType)
		}
	}
	if err != nil {
		r.Free()
	}
	return err
}
