package main

import (
	"context"

	"github.com/sluice-go/sluice/algo"
)

// rejects denies everything, to measure the cost of a rejection.
type rejects struct{}

func (rejects) Acquire(context.Context, string, int64) (algo.Lease, error) {
	var l algo.Lease
	l.Reason, l.RetryAfter = algo.Overload, 1
	return l, nil
}
