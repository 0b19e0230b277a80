package distributed

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/redistest"
	"github.com/sluice-go/sluice/internal/remote"
)

// allScripts are the sources of all scripts.
func allScripts() map[string]string {
	return map[string]string{
		"bucket": bucketScript.Source, "fixed window": fixedWindowScript.Source, "sliding window": slidingWindowScript.Source,
		"credits": creditsScript.Source, "log": logScript.Source, "in flight": inFlightScript.Source, "region": lua("region"),
		"ban": lua("ban"), "shares": lua("shares"), "heartbeat": lua("heartbeat"),
	}
}

// Lua 5.2 to 5.4, of servers other than Redis, lack these functions of Lua 5.1.
func TestScriptsUseNoFunctionThatLaterLuaLacks(t *testing.T) {
	gone := regexp.MustCompile(`\b(getfenv|setfenv|loadstring|table\.getn|table\.maxn|math\.pow|math\.mod|math\.log10|string\.gfind|unpack)\b`)
	for name, source := range allScripts() {
		source = strings.ReplaceAll(source, "(table.unpack or unpack)", "")
		require.Empty(t, gone.FindAllString(source, -1), name)
	}
}

// On a server with Lua 5.4, where unpack is no global, bans decide as ever.
func TestBansOnLua54(t *testing.T) {
	const lua54 = "local table = {unpack = unpack, sort = table.sort, concat = table.concat}\nlocal unpack = nil\n"
	was, wasBucket := prelude, *bucketScript
	t.Cleanup(func() { prelude, *bucketScript = was, wasBucket })
	prelude = lua54 + prelude
	*bucketScript = *remote.NewScript("bucket", lua54+wasBucket.Source, wasBucket.Args, wasBucket.Replies)
	store, err := New(redistest.Start(t).Client(), WithTimeout(5*time.Second), WithInstances(1), WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	l, err := store.TokenBucket("a", algo.PerDay(1))
	require.NoError(t, err)
	ban, err := NewBan(l, algo.Per(2, time.Hour), time.Minute, time.Hour)
	require.NoError(t, err)
	var lease algo.Lease
	for range 5 {
		lease, err = ban.Acquire(t.Context(), "k", 1)
		require.NoError(t, err)
		require.NotEqual(t, algo.SourceFallback, lease.Source)
	}
	require.Equal(t, algo.Banned, lease.Reason)
	require.Equal(t, PhaseClosed, store.Stats().Phase)
}

// A script that a server cannot run takes no other limit along.
func TestOneBrokenScriptOpensNoBreaker(t *testing.T) {
	was := *slidingWindowScript
	t.Cleanup(func() { *slidingWindowScript = was })
	source := strings.Replace(was.Source, "local reply", "nothing_of_this_name()\nlocal reply", 1)
	*slidingWindowScript = *remote.NewScript("sliding window", source, was.Args, was.Replies)
	store, err := New(redistest.Start(t).Client(), WithTimeout(5*time.Second), WithInstances(1), WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	broken, err := store.SlidingWindow("broken", algo.PerDay(100))
	require.NoError(t, err)
	well, err := store.TokenBucket("well", algo.PerDay(100))
	require.NoError(t, err)
	for range 20 {
		lease, err := broken.Acquire(t.Context(), "k", 1)
		require.NoError(t, err)
		require.Equal(t, algo.SourceFallback, lease.Source)
		lease, err = well.Acquire(t.Context(), "k", 1)
		require.NoError(t, err)
		require.Equal(t, algo.SourceRemote, lease.Source)
	}
}
