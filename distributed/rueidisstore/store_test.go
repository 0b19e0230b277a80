package rueidisstore_test

import (
	"crypto/tls"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rueidisstore"
	"github.com/sluice-go/sluice/internal/workshop/storetest"
)

func TestStore(t *testing.T) { storetest.Run(t, open, leastRights(t)) }

func open(t testing.TB, s storetest.Server, opts ...distributed.Option) *distributed.Store {
	t.Helper()
	o := rueidis.ClientOption{
		InitAddress: s.Addrs, TLSConfig: s.TLS, Username: s.User, Password: s.Password,
		AlwaysRESP2: s.Protocol == 2, DisableCache: true, ForceSingleClient: !s.Cluster && s.Master == "",
	}
	if s.Master != "" {
		o.Sentinel.MasterSet = s.Master
	}
	if s.Unix {
		o.DialFn = func(path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) { return d.Dial("unix", path) }
	}
	c, err := rueidis.NewClient(o)
	require.NoError(t, err)
	store, err := rueidisstore.New(c, opts...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, store.Close())
		c.Close()
	})
	return store
}

// leastRights is the documented command.
func leastRights(t *testing.T) (words []any) {
	page, err := os.ReadFile("../../docs/guides/redis.md")
	require.NoError(t, err)
	for _, w := range strings.Fields(regexp.MustCompile("(?m)^ACL SETUSER limits .*$").FindString(string(page))) {
		words = append(words, w)
	}
	require.NotEmpty(t, words)
	return words
}

func TestNilClient(t *testing.T) {
	_, err := rueidisstore.New(nil)
	require.Error(t, err)
}
