package live_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/reload"
)

func apply(t *testing.T, l *reload.Limits, limits map[string]string) (limiters map[string]algo.Limiter, changes reload.Changes) {
	t.Helper()
	wanted := map[string]algo.Spec{}
	for id, s := range limits {
		wanted[id] = algo.Must(algo.Parse(s))
	}
	changes, err := l.Apply(wanted, func(all map[string]algo.Limiter) error { limiters = all; return nil })
	require.NoError(t, err)
	return limiters, changes
}

func spend(t *testing.T, l algo.Limiter, n int64) algo.Decision {
	t.Helper()
	lease, err := l.Acquire(context.Background(), "k", n)
	require.NoError(t, err)
	return lease.Decision
}
