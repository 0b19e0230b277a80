package distributed_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed"
)

func TestOptionsNameTheFieldAndTheValue(t *testing.T) {
	for _, tc := range []struct {
		option distributed.Option
		says   string
	}{
		{distributed.WithTimeout(0), "WithTimeout: is 0s"},
		{distributed.WithTimeout(time.Hour), "WithTimeout: is 1h0m0s"},
		{distributed.WithPrefix(""), `WithPrefix: is ""`},
		{distributed.WithPrefix("a{}"), `WithPrefix: is "a{}"`},
		{distributed.WithPrefix("a{b"), `WithPrefix: is "a{b"`},
		{distributed.WithPrefix("a}b{c}"), `WithPrefix: is "a}b{c}"`},
		{distributed.WithPrefix("a\nb"), `WithPrefix: is "a\nb"`},
		{distributed.WithFallback(9), "WithFallback: is 9"},
		{distributed.WithInstances(0), "WithInstances: is 0"},
		{distributed.WithDenyCache(-1), "WithDenyCache: is -1"},
		{distributed.WithBlocks(0), "WithBlocks: is 0"},
		{distributed.WithLogger(nil), "WithLogger: is nil"},
		{distributed.WithHook(nil), "WithHook: is nil"},
		{distributed.Option{}, "the zero Option is not an option"},
	} {
		_, err := distributed.New(nowhere(t), tc.option)
		require.ErrorContains(t, err, tc.says)
	}
	_, err := distributed.New(nil)
	require.ErrorContains(t, err, "client is nil")
	_, err = distributed.New(nowhere(t), distributed.WithLogger(slog.Default()))
	require.NoError(t, err)
}

// TestOptionsTwice: no option silently replaces another.
func TestOptionsTwice(t *testing.T) {
	for name, o := range map[string]distributed.Option{
		"WithTimeout": distributed.WithTimeout(time.Second), "WithPrefix": distributed.WithPrefix("p"),
		"WithInstances": distributed.WithInstances(1), "WithAssumedInstances": distributed.WithAssumedInstances(1),
		"WithService": distributed.WithService("s"), "WithBlocks": distributed.WithBlocks(1),
		"WithDenyCache": distributed.WithDenyCache(0),
		"WithLogger":    distributed.WithLogger(slog.Default()), "WithHook": distributed.WithHook(func(distributed.Event) {}),
	} {
		_, err := distributed.New(nowhere(t), o, distributed.WithTimeout(time.Minute), o)
		if name == "WithTimeout" {
			_, err = distributed.New(nowhere(t), o, o)
		}
		require.EqualError(t, err, "distributed: duplicate option "+name)
	}
}
