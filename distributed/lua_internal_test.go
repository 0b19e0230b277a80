package distributed

import (
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// allScripts are the sources of all scripts.
func allScripts() map[string]string {
	all := map[string]string{"ping": lua("ping"), "heartbeat": lua("heartbeat"), "shares": lua("shares")}
	for _, s := range scripts {
		all[s.Name] = s.Source()
	}
	return all
}

// The list of scripts, which Ping loads, has the text of each file; that of shares depends on their floors.
func TestScriptsAreAll(t *testing.T) {
	entries := algo.Must(files.ReadDir("."))
	require.Greater(t, len(entries), 12)
	all := strings.Join(slices.Collect(maps.Values(allScripts())), "")
	for _, e := range entries {
		require.Contains(t, all, lua(strings.TrimSuffix(e.Name(), ".lua")), e.Name())
	}
}

// A program that links this package reads, joins and hashes no script before it uses one.
func TestScriptsAreMadeAtFirstUse(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	said := string(algo.Must(c.CombinedOutput()))
	init := regexp.MustCompile(`init github.com/sluice-go/sluice/distributed @.* (\d+) bytes`).FindStringSubmatch(said)
	require.NotNil(t, init, said)
	require.Less(t, algo.Must(strconv.Atoi(init[1])), 40_000)
}

// Lua 5.2 to 5.4, of servers other than Redis, lack these functions of Lua 5.1.
func TestScriptsUseNoFunctionThatLaterLuaLacks(t *testing.T) {
	gone := regexp.MustCompile(`\b(getfenv|setfenv|loadstring|table\.getn|table\.maxn|math\.pow|math\.mod|math\.log10|string\.gfind|unpack)\b`)
	for name, source := range allScripts() {
		source = strings.ReplaceAll(source, "(table.unpack or unpack)", "")
		require.Empty(t, gone.FindAllString(source, -1), name)
	}
}

// usePrelude replaces the beginning of scripts that are made until the test ends.
func usePrelude(t *testing.T, source string) {
	was, all := prelude, scripts
	prelude, banScripts, scripts = text(source), sync.Map{}, nil
	t.Cleanup(func() { prelude, banScripts, scripts = was, sync.Map{}, all })
}

// On a server with Lua 5.4, where unpack is no global, bans decide as ever.
func TestBansOnLua54(t *testing.T) {
	const lua54 = "local table = {unpack = unpack, sort = table.sort, concat = table.concat}\nlocal unpack = nil\n"
	wasBucket := *bucketScript
	t.Cleanup(func() { *bucketScript = wasBucket })
	usePrelude(t, lua54+prelude())
	*bucketScript = *remote.NewScript("bucket", text(lua54+wasBucket.Source()), wasBucket.Args, wasBucket.Replies)
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
	source := strings.Replace(was.Source(), "local reply", "nothing_of_this_name()\nlocal reply", 1)
	*slidingWindowScript = *remote.NewScript("sliding window", text(source), was.Args, was.Replies)
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
