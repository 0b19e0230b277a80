package strategy_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
)

var background = context.Background()

func newLimiter(t testing.TB, s adaptive.Strategy, opts ...adaptive.Option) *adaptive.Limiter {
	t.Helper()
	l, err := adaptive.New(s, opts...)
	require.NoError(t, err)
	return l
}

// acquire expects a decision, whatever it is.
func acquire(t testing.TB, l algo.Limiter, key string, n int64) algo.Lease {
	lease, err := l.Acquire(background, key, n)
	if err != nil { // require takes longer than the limiter
		t.Helper()
		t.Fatal(err)
	}
	return lease
}

// fill acquires until one is denied, and returns the leases.
func fill(t testing.TB, l algo.Limiter, most int) (leases []algo.Lease) {
	t.Helper()
	for range most {
		lease := acquire(t, l, "", 1)
		if !lease.Allowed {
			break
		}
		leases = append(leases, lease)
	}
	return leases
}

func releaseAll(leases []algo.Lease, o algo.Outcome) {
	for i := range leases {
		leases[i].Release(o)
	}
}
