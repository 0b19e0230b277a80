package prepaid_test

import (
	"context"
	"flag"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

var bg = context.Background()

var must, peek, bucket = fakes.Acquire, fakes.Look, fakes.Bucket

// allows reports whether n units are admitted now.
func allows(l algo.Limiter, key string, n int64) bool {
	lease, err := l.Acquire(bg, key, n)
	if lease.Delay > 0 {
		lease.Release(algo.Canceled)
		return false
	}
	return err == nil && lease.Allowed
}

// checks lets rapid try more in a long run, and says how many as format wants.
func checks(t *testing.T, format string) {
	t.Helper()
	n := cases.Count(100, 50_000)
	was := flag.Lookup("rapid.checks").Value.String()
	require.NoError(t, flag.Set("rapid.checks", strconv.Itoa(n)))
	t.Cleanup(func() {
		require.NoError(t, flag.Set("rapid.checks", was))
		t.Logf(format, n)
	})
}
