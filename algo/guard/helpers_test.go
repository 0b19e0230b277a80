package guard_test

import (
	"context"

	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

var (
	bg                               = context.Background()
	must, peek, acquireAll, bucket   = fakes.Acquire, fakes.Look, fakes.AcquireAll, fakes.Bucket
	saying, broken, errBroken, group = fakes.Saying, fakes.Broken, fakes.ErrBroken, fakes.Group
)
