package distributed

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/algo"
)

func resolve(kind, name string, r algo.Rate, opts []algo.Option) (asked, error) {
	b, err := algo.NewTokenBucket(r, opts...)
	if err != nil {
		return asked{}, fmt.Errorf("distributed: %s %q: %w", kind, name, err)
	}
	p, _ := b.Acquire(context.Background(), "", 0)
	return asked{rate: r, burst: p.Limit, burstSet: p.Limit != r.Count}, nil
}
