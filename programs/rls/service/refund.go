package service

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/sluice-go/sluice/algo"
)

// refund gives back the units of all descriptors with negative hits, at once, whatever is
// decided on the others. If a limit gives back the units of leases only, nothing is given
// back, and the error is [errors.ErrUnsupported]. Other errors are joined.
func refund(ctx context.Context, all []asked) error {
	var calls []func() error
	for i := range all {
		a := &all[i]
		if a.limit == nil || a.back == 0 {
			continue
		}
		give := func(n int64) error {
			if err := giveBack(ctx, a.limit.counts, a.key, n); err != nil {
				return fmt.Errorf("descriptors[%d]: is_negative_hits: %w", i, err)
			}
			return nil
		}
		// A negative number is an error that changes nothing and asks no Redis. Limits that
		// can give nothing back say so first.
		if err := give(-1); errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		calls = append(calls, func() error { return give(a.back) })
	}
	return atOnce(calls)
}

// atOnce makes all calls, each in its own goroutine if there are several, and joins their
// errors. A panic of one is a panic of atOnce, after the last has ended: what recovers around
// a request sees only the request's own goroutine.
func atOnce(calls []func() error) error {
	switch len(calls) {
	case 0:
		return nil
	case 1:
		return calls[0]()
	}
	errs, panics := make([]error, len(calls)), make([]string, len(calls))
	var running sync.WaitGroup
	for i, call := range calls {
		running.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					panics[i] = fmt.Sprintf("%v\n%s", p, debug.Stack())
				}
			}()
			errs[i] = call()
		})
	}
	running.Wait()
	for _, p := range panics {
		if p != "" {
			panic(p)
		}
	}
	return errors.Join(errs...)
}

func giveBack(ctx context.Context, l algo.Limiter, key string, n int64) (err error) {
	if l == algo.DenyAll() {
		return nil // nothing was spent
	}
	switch l := l.(type) {
	case interface {
		Refund(ctx context.Context, key string, n int64) (int64, error)
	}:
		_, err = l.Refund(ctx, key, n)
		return err
	case interface {
		Refund(key string, n int64) (int64, error)
	}:
		_, err = l.Refund(key, n)
		return err
	}
	return fmt.Errorf("the limit is neither a bucket nor a fixed window: %w", errors.ErrUnsupported)
}
