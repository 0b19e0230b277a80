package strategy_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/internal/workshop/fakes"
)

var background = context.Background()

var acquire, fill, releaseAll = fakes.Acquire, fakes.Fill, fakes.ReleaseAll

func newLimiter(t testing.TB, s adaptive.Strategy, opts ...adaptive.Option) *adaptive.Limiter {
	t.Helper()
	l, err := adaptive.New(s, opts...)
	require.NoError(t, err)
	return l
}
