//go:build unix

package service_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/internal/redistest"
)

// On Redis two services share the buckets, and the descriptors of a request are
// decided in one step there.
func TestRedis(t *testing.T) {
	server := redistest.Start(t)
	open := func() *rig {
		store, err := distributed.New(server.Client(), distributed.WithTimeout(5*time.Second), distributed.WithFallback(distributed.DenyAll))
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		return newRig(t, `
domains:
  - name: d
    descriptors:
      - {key: user, name: user, limit: 10/h}
      - {key: tenant, name: tenant, limit: 2/h}
      - {key: free, unlimited: true}
`, store)
	}
	one := open()
	anyDenies(t, one)
	resp := open().ask(0, descriptor("user=ann"), descriptor("tenant=t"))
	require.Equal(t, over, resp.OverallCode)
	require.Equal(t, over, resp.Statuses[1].Code)
}
