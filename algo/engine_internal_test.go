package algo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEveryEngine: AcquireAll knows each limiter that a Spec can make.
func TestEveryEngine(t *testing.T) {
	for _, a := range algorithms() {
		l, err := a.make(Spec{Rate: PerSecond(10), Warmup: time.Second})
		require.NoError(t, err, a.name)
		require.True(t, hasEngine(l), a.name)
		require.Implements(t, (*engine)(nil), l)
	}
	require.False(t, hasEngine(struct{ *TokenBucket }{Must(NewTokenBucket(PerSecond(1)))}))
}
