package algo

import (
	"errors"
	"fmt"
)

// ErrCost reports a cost that no limit can admit: a negative one, or, from
// [Wait], one larger than the limit can ever admit.
var ErrCost = errors.New("algo: cost out of range")

var errRequest = errors.New("algo: invalid request")

// ErrWait reports a wait that does not help: admission would come later than the caller's context
// allows, or never, or the limit has no line to wait in. Nothing remains charged.
var ErrWait = errors.New("algo: waiting does not help")

func costError(n int64) error {
	return fmt.Errorf("%w: n is %d, want 0 or more", ErrCost, n)
}
