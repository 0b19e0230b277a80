package distributed_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// A store from a URL answers, or the error says why not; Close closes its client.
func TestOpen(t *testing.T) {
	server, cluster := redistest.Start(t), redistest.StartCluster(t)
	server.Do("ACL", "SETUSER", "limits", "on", ">secret", "~*", "+@all")
	patient := distributed.WithTimeout(5 * time.Second)
	for _, url := range []string{
		"redis://" + server.Addr(), "redis://limits:secret@" + server.Addr() + "/2",
		"redis://" + cluster.Addrs()[0] + "?addr=" + cluster.Addrs()[1],
	} {
		store := must[*distributed.Store](t)(distributed.Open(t.Context(), url, patient))
		l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(10)))
		for range 10 {
			require.True(t, remote(t, l, "k", 1).Allowed)
		}
		require.False(t, remote(t, l, "k", 1).Allowed)
		require.NoError(t, store.Close())
		require.Error(t, store.Client().Ping(context.Background()).Err())
	}
	for url, says := range map[string]string{
		"redis://127.0.0.1:1":                       "refused",
		"redis://limits:wrong@" + server.Addr():     "WRONGPASS",
		"http://localhost":                          "scheme",
		fmt.Sprint("redis://", server.Addr(), "/x"): "database",
	} {
		_, err := distributed.Open(t.Context(), url, patient)
		require.ErrorContains(t, err, says, url)
	}
	_, err := distributed.Open(t.Context(), "redis://"+server.Addr(), distributed.WithTimeout(-1))
	require.ErrorContains(t, err, "WithTimeout")
}

// Open reaches the master that Sentinels name, and says what the address of a Sentinel alone lacks.
func TestOpenWithSentinels(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	url := "redis://" + s.Addrs[0] + "?master_name=" + s.Name
	for _, more := range s.Addrs[1:] {
		url += "&addr=" + more
	}
	store := must[*distributed.Store](t)(distributed.Open(t.Context(), url, distributed.WithTimeout(patient)))
	t.Cleanup(func() { _ = store.Close() })
	l := must[*distributed.Limiter](t)(store.TokenBucket("a", algo.PerHour(10)))
	require.True(t, remote(t, l, "k", 1).Allowed)
	_, err := distributed.Open(t.Context(), "redis://"+s.Addrs[0], distributed.WithTimeout(patient))
	require.ErrorContains(t, err, "Sentinel")
}
