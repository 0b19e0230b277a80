package distributed_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/workshop/storetest"
)

// open makes a store on a client of go-redis.
func open(t testing.TB, s storetest.Server, opts ...distributed.Option) *distributed.Store {
	t.Helper()
	o := redis.UniversalOptions{
		Addrs: s.Addrs, MasterName: s.Master, IsClusterMode: s.Cluster, TLSConfig: s.TLS,
		Username: s.User, Password: s.Password, Protocol: s.Protocol,
	}
	var c redis.UniversalClient
	if s.Unix {
		simple := o.Simple()
		simple.Network = "unix"
		c = redis.NewClient(simple)
	} else {
		c = redis.NewUniversalClient(&o)
	}
	store, err := distributed.New(c, opts...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, store.Close())
		_ = c.Close()
	})
	return store
}

// TestConnections: every limit works over each way to reach Redis that go-redis has,
// with both versions of its protocol, and with the least rights that are documented.
func TestConnections(t *testing.T) { storetest.Connections(t, open, leastRights(t)) }

// TestOutage: decisions stay within their time, and Redis decides again.
func TestOutage(t *testing.T) { storetest.Outage(t, open) }

// leastRights is the documented command.
func leastRights(t *testing.T) (words []any) {
	page, err := os.ReadFile("../docs/guides/redis.md")
	require.NoError(t, err)
	for _, w := range strings.Fields(regexp.MustCompile("(?m)^ACL SETUSER limits .*$").FindString(string(page))) {
		words = append(words, w)
	}
	require.NotEmpty(t, words)
	return words
}
