package algo

import (
	"errors"
	"fmt"
)

// ErrCost reports a cost that no limit can admit: a negative one, or, from
// [Wait], one larger than the limit can ever admit.
var ErrCost = errors.New("algo: cost out of range")

var errRequest = errors.New("algo: invalid request")

// ErrWait reports that waiting is useless: admission would come after the context's deadline or
// never, or callers of the limit cannot queue. Nothing remains charged.
var ErrWait = errors.New("algo: waiting does not help")

func costError(n int64) error {
	return fmt.Errorf("%w: n is %d, want 0 or more", ErrCost, n)
}
