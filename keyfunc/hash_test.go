package keyfunc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

func TestHash(t *testing.T) {
	require.Zero(t, keyfunc.Hash(""))
	require.NotZero(t, keyfunc.Hash("203.0.113.7"))
	require.Equal(t, keyfunc.Hash("203.0.113.7"), keyfunc.Hash("203.0.113.7"))
	require.NotEqual(t, keyfunc.Hash("203.0.113.7"), keyfunc.Hash("203.0.113.8"))
	require.Zero(t, testing.AllocsPerRun(100, func() { keyfunc.Hash("203.0.113.7") }))
}
