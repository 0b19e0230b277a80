package rules_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
)

// A limit is switched off with an end and a reason, whether it is a rule or beneath one; the limits of
// single keys outlast it, and a trial stays a trial.
func TestSwitchOff(t *testing.T) {
	store, server := onRedis(t)
	set := newRules(t, store)
	own := must[*distributed.Limiter](t)(store.Limiter("own", spec(t, "5/h")))
	require.NoError(t, set.Put(ctx, "whole", rules.Rule{Limit: spec(t, "5/h")}))
	for name, l := range map[string]*rules.Limiter{"over": set.Over("over", own), "whole": set.Limiter("whole")} {
		require.True(t, acquire(t, l, "k", 5).Allowed)
		require.False(t, acquire(t, l, "k", 1).Allowed)
		require.NoError(t, l.SwitchOn(ctx), "it is on")
		require.False(t, algo.About(l).Off)

		until := time.Now().Add(2 * time.Second)
		require.NoError(t, l.SwitchOff(ctx, until, "ticket 7"))
		require.Equal(t, algo.SourceOff, acquire(t, l, "k", 1).Source)
		require.True(t, algo.About(l).Off)
		off, end, reason := l.SwitchedOff()
		require.True(t, off)
		require.WithinDuration(t, until, end, 0)
		require.Equal(t, "ticket 7", reason)
		require.NoError(t, l.Adjust(ctx, "vip", rules.Temporary{Limit: spec(t, "9/h"), Until: time.Now().Add(time.Hour)}))
		require.Equal(t, algo.SourceOff, acquire(t, l, "vip", 1).Source)
		time.Sleep(time.Until(until))
		require.False(t, acquire(t, l, "k", 1).Allowed, "it ends by itself")
		require.Equal(t, int64(9), acquire(t, l, "vip", 0).Limit)
		require.False(t, algo.About(l).Off)

		require.NoError(t, l.Adjust(ctx, "vip", rules.Temporary{}))
		require.NoError(t, l.SwitchOff(ctx, time.Time{}, ""))
		require.True(t, acquire(t, l, "k", 1).Allowed)
		require.NoError(t, l.SwitchOn(ctx), "%s: also with nothing left in the rule", name)
		require.False(t, acquire(t, l, "k", 1).Allowed)
	}
	require.False(t, acquire(t, newRules(t, newStore(t, store.Client())).Limiter("whole"), "k", 1).Allowed, "an instance that starts")
	require.NoError(t, set.Put(ctx, "trial", rules.Rule{Limit: spec(t, "5/h"), Mode: rules.ModeShadow}))
	require.NoError(t, set.Limiter("trial").SwitchOff(ctx, time.Time{}, ""))
	require.NoError(t, set.Limiter("trial").SwitchOn(ctx))
	require.Equal(t, rules.ModeShadow, must[rules.Rule](t)(set.Get(ctx, "trial")).Mode)
	require.ErrorIs(t, set.Limiter("absent").SwitchOff(ctx, time.Time{}, ""), rules.ErrNoRule)
	require.NotContains(t, server.Do("HGET", "sluice:{::rules:limits}", "whole"), "mode", "an earlier version can read it")
}

// Each limit that is off is logged, and again after it was on.
func TestSwitchedOffIsLogged(t *testing.T) {
	store, _ := onRedis(t)
	var out bytes.Buffer
	set := must[*rules.Rules](t)(rules.New(ctx, store, "limits", rules.WithLogger(slog.New(slog.NewTextHandler(&out, nil)))))
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	require.NoError(t, set.Put(ctx, "r", rules.Rule{Limit: spec(t, "5/h")}))
	l := set.Limiter("r")
	for range 2 {
		require.NoError(t, l.SwitchOff(ctx, time.Now().Add(time.Hour), "ticket 7"))
		for range 3 {
			acquire(t, l, "k", 1)
		}
		require.NoError(t, l.SwitchOn(ctx))
		acquire(t, l, "k", 1)
	}
	require.Equal(t, 2, strings.Count(out.String(), "code=algo.switched_off"), out.String())
	require.Regexp(t, `rule=r .*reason="ticket 7" until=\S+Z`, out.String())
}

// A rule that another version has written, with fields that this one does not know, lifts no limit: in an
// instance that knew the rule its last version is in force, and one that starts falls back to its own limit,
// or denies. No version switches a limit off without its end.
func TestRulesOfALaterVersion(t *testing.T) {
	store, server := onRedis(t)
	set := newRules(t, store)
	require.NoError(t, set.Put(ctx, "r", rules.Rule{Limit: spec(t, "3/h")}))
	garble(server, "1900000000000000 "+`{"limit":"3/h","mode":"off","until_load":"low"}`)
	require.NoError(t, set.Put(ctx, "other", rules.Rule{Limit: spec(t, "5/h")}))
	require.Equal(t, int64(3), remote(t, set.Limiter("r"), "k", 0).Limit)

	started := newRules(t, newStore(t, store.Client()))
	require.False(t, acquire(t, started.Limiter("r"), "k", 1).Allowed)
	own := must[*distributed.Limiter](t)(store.Limiter("own", spec(t, "7/h")))
	require.Equal(t, int64(7), acquire(t, started.Over("r", own), "k", 0).Limit)
	given := newRules(t, newStore(t, store.Client()), rules.WithLimit("r", spec(t, "2/h")))
	require.Equal(t, int64(2), acquire(t, given.Limiter("r"), "k", 0).Limit)

	text, err := json.Marshal(rules.Rule{Limit: spec(t, "3/h"), Mode: rules.ModeOff, Until: time.Now()})
	require.NoError(t, err)
	require.Contains(t, string(text), `"until"`, "a version without it refuses the rule")
}
