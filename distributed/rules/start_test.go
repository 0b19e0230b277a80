package rules_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// A start without Redis admits by the limits of WithLimit, and nothing by rules that are not known
// yet. It is said once. With Redis the rules hold, and keys keep what they have spent.
func TestStartWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server)
	proxy.Set(redistest.Fault{Refuse: true})
	c := redis.NewClient(&redis.Options{Addr: proxy.Addr(), DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	var log bytes.Buffer
	store := newStore(t, c, distributed.WithTimeout(5*time.Second), distributed.WithInstances(1))
	set := must[*rules.Rules](t)(rules.New(t.Context(), store, "limits", rules.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
		rules.WithLimit("search", spec(t, "10/h")), rules.WithLimit("plain", spec(t, "7/h"))))
	admitted := func(l algo.Limiter) (n int) {
		for range 1000 {
			if acquire(t, l, "k", 1).Allowed {
				n++
			}
		}
		return n
	}
	require.False(t, set.Loaded())
	require.Equal(t, 10, admitted(set.Limiter("search")))
	require.EqualValues(t, 10, algo.About(set.Limiter("search")).Quota)
	require.Zero(t, admitted(set.Limiter("other")))
	denied := acquire(t, set.Limiter("other"), "k", 1)
	require.Equal(t, algo.Overload, denied.Reason)
	require.Positive(t, denied.RetryAfter)
	over := must[*distributed.Limiter](t)(store.TokenBucket("over", algo.PerHour(3)))
	require.Equal(t, 3, admitted(set.Over("more", over)), "the limit beneath")

	editor := newRules(t, newStore(t, server.Client(), distributed.WithTimeout(5*time.Second)))
	require.NoError(t, editor.Put(ctx, "search", rules.Rule{Limit: spec(t, "20/h")}))
	proxy.Set(redistest.Fault{})
	require.Eventually(t, set.Loaded, 20*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return acquire(t, set.Limiter("search"), "other", 0).Source == algo.SourceRemote }, 10*time.Second, 10*time.Millisecond)
	require.EqualValues(t, 20, algo.About(set.Limiter("search")).Quota)
	require.Equal(t, algo.SourceOff, acquire(t, set.Limiter("other"), "k", 1).Source, "there is no such rule")
	require.EqualValues(t, 7, algo.About(set.Limiter("plain")).Quota, "nor such a rule")
	require.NoError(t, editor.Delete(ctx, "search"))
	require.Eventually(t, func() bool { return algo.About(set.Limiter("search")).Quota == 10 }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, set.Close())
	require.Equal(t, 1, strings.Count(log.String(), "not been read"), log.String())
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "those beneath Over are in force, and other rules deny\" decides=\"each limit with a share of 1/1 in this instance\"")
	require.NotContains(t, log.String(), "last known")
}

func TestWithLimitNamesRuleAndLimit(t *testing.T) {
	store := newStore(t, nowhere(t))
	_, err := rules.New(ctx, store, "limits", rules.WithLimit("search", spec(t, "5/d keys 7")))
	require.ErrorContains(t, err, `WithLimit of "search": a rule does not take the option keys`)
	_, err = rules.New(ctx, store, "limits", rules.WithLimit("search", algo.Spec{}))
	require.ErrorContains(t, err, `WithLimit of "search"`)
	limit := rules.WithLimit("search", spec(t, "5/d"))
	_, err = rules.New(ctx, store, "limits", limit, limit)
	require.ErrorContains(t, err, `duplicate option WithLimit of "search"`)
}
