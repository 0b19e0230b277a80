package keyfunc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

func TestGlobal(t *testing.T) {
	a := keyOf(t, keyfunc.Global(), request("192.0.2.1:1", xff))
	require.Empty(t, a)
	require.Equal(t, a, keyOf(t, keyfunc.Global(), request("192.0.2.2:1", xff, "x")))
}
