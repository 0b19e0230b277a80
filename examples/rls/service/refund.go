package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/algo"
)

// refund gives back the units of all descriptors with negative hits, whatever is decided on
// the others. It ends at the first error.
func refund(ctx context.Context, all []asked) error {
	for i := range all {
		a := &all[i]
		if a.limit == nil || a.back == 0 {
			continue
		}
		if err := giveBack(ctx, a.limit.counts, a.key, a.back); err != nil {
			return fmt.Errorf("descriptors[%d]: is_negative_hits: %w", i, err)
		}
	}
	return nil
}

func giveBack(ctx context.Context, l algo.Limiter, key string, n int64) error {
	switch l := l.(type) {
	case interface {
		Refund(ctx context.Context, key string, n int64) error
	}:
		return l.Refund(ctx, key, n)
	case interface {
		Refund(key string, n int64) error
	}:
		return l.Refund(key, n)
	case banned, nothing:
		return nil // nothing was spent
	}
	return fmt.Errorf("the limit is neither a bucket nor a fixed window: %w", errors.ErrUnsupported)
}
