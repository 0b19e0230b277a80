package distributed

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// withoutScripts is the way to a server that has restarted and knows no script.
type withoutScripts struct {
	virtualTransport
	known map[string]bool
}

func (w *withoutScripts) Do(ctx context.Context, cmds []*Command) {
	for _, c := range cmds {
		words, _ := c.Words()
		script := hashOf(words)
		if w.known[script] = w.known[script] || words[0] == "eval"; w.known[script] {
			w.virtualTransport.Do(ctx, []*Command{c})
			continue
		}
		time.Sleep(simulatedTrip)
		c.Done(nil, ReplyError("NOSCRIPT No matching script."))
	}
}

// A server that has lost its scripts is not away: commands whose callers have gone meanwhile are
// not sent again, and open no breaker.
func TestF4_LostScriptsOfCallersThatHaveGone(t *testing.T) {
	freshRequests(t)
	synctest.Test(t, func(t *testing.T) {
		server := newVirtualServer(perMicros(1, time.Hour), 1)
		store, err := NewWithTransport(&withoutScripts{virtualTransport{server: server, sent: func() {}}, map[string]bool{}},
			WithLogger(slog.New(slog.DiscardHandler)), WithInstances(1))
		require.NoError(t, err)
		defer func() { require.NoError(t, store.Close()) }()
		l, err := store.TokenBucket("a", algo.PerHour(1))
		require.NoError(t, err)
		for range 64 {
			ctx, cancel := context.WithTimeout(t.Context(), simulatedTrip/2)
			lease, err := l.Acquire(ctx, "gone", 1)
			cancel()
			require.NoError(t, err)
			require.Equal(t, algo.SourceFallback, lease.Source)
			time.Sleep(simulatedTrip)
		}
		lease, err := l.Acquire(t.Context(), "k", 1)
		require.NoError(t, err)
		require.Equal(t, algo.SourceRemote, lease.Source)
		require.True(t, lease.Allowed)
	})
}
