package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed/rules"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

const inRedis = "sluice:{::rules:limits}"

// A rule that is written by hand, or by an earlier version, in place of another one is followed, among many
// rules too; one that is put afterwards replaces it.
func TestRulesPutByOthersAreFollowed(t *testing.T) {
	server := redistest.Start(t)
	fill(t, server.Client(), 300)
	set := follower(t, server.Client())
	require.True(t, set.Loaded())
	other := rules.VersionOf(set, "rule7")
	for i, text := range []string{`{"limit":"9/h"}`, `1 {"limit":"10/h"}`, `17 {"limit":"11/h"}`} {
		server.Do("HSET", inRedis, "rule150", text)
		require.Eventually(t, func() bool { return limitOf(set, "rule150") == int64(9+i) }, 30*time.Second, time.Millisecond, text)
	}
	require.NoError(t, set.Put(ctx, "rule150", perHour(3)))
	require.Equal(t, int64(3), limitOf(set, "rule150"))
	require.Equal(t, int64(3), limitOf(follower(t, server.Client()), "rule150"))
	require.Equal(t, other, rules.VersionOf(set, "rule7"), "the others keep their versions")
}

// A deleted rule is forgotten after a week, and instances do not look for it.
func TestDeletedRulesExpire(t *testing.T) {
	server := redistest.Start(t)
	before := follower(t, server.Client())
	for i := range 200 {
		require.NoError(t, before.Put(ctx, fmt.Sprint("gone", i), perHour(1)))
		require.NoError(t, before.Delete(ctx, fmt.Sprint("gone", i)))
	}
	require.NoError(t, before.Put(ctx, "stays", perHour(2)))
	require.NoError(t, before.Close())
	for i := range 200 { // eight days ago
		version := time.Now().Add(-8*24*time.Hour).UnixMicro() + int64(i)
		server.Do("HSET", inRedis, fmt.Sprint("gone", i), fmt.Sprint(version, ` {"deleted":true}`))
		server.Do("ZADD", inRedis+":versions", version, fmt.Sprint("gone", i))
	}
	first := follower(t, server.Client())
	require.Eventually(t, func() bool { return server.Do("HLEN", inRedis) == int64(1) }, 30*time.Second, time.Millisecond)
	require.Equal(t, int64(2), server.Do("ZCARD", inRedis+":versions"))
	second := follower(t, server.Client())
	require.NoError(t, second.Put(ctx, "new", perHour(5)))
	require.Eventually(t, func() bool { return limitOf(first, "new") == 5 }, 30*time.Second, time.Millisecond)
	time.Sleep(2 * time.Second)
	require.Equal(t, int64(2), server.Do("HLEN", inRedis), "nobody writes them again")
	require.Equal(t, int64(2), limitOf(second, "stays"))
}

// A start with very many rules knows them, or denies until it does.
func TestStartWithManyRules(t *testing.T) {
	server := redistest.Start(t)
	n := cases.Count(20_000, 100_000)
	fill(t, server.Client(), n)
	set := follower(t, server.Client())
	last := fmt.Sprint("rule", n-1)
	for !set.Loaded() {
		require.True(t, limitOf(set, last) != 0 || !acquire(t, set.Limiter(last), "k", 1).Allowed)
		time.Sleep(10 * time.Millisecond)
	}
	require.Equal(t, int64(n), limitOf(set, last))
}
