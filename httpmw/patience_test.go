package httpmw_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
)

// However many servers ask to wait, the memory is bounded.
func TestTransportForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := 100
		server := roundTrip(func(r *http.Request) (*http.Response, error) {
			wait++
			return reply(429, "Retry-After", fmt.Sprint(wait))(r)
		})
		tr := httpmw.Transport(server, unlimited(t), keyfunc.Global(), httpmw.WithMaxServers(2))
		took := func(host string) time.Duration {
			start := time.Now()
			_, err := tr.RoundTrip(outgoing(t.Context(), "http://"+host))
			require.NoError(t, err)
			return time.Since(start)
		}
		for _, host := range []string{"a", "b", "c"} { // 101, 102, 103 s
			require.Zero(t, took(host))
		}
		require.Zero(t, took("a"), "it was the first to end, and forgotten; now b is")
		require.Equal(t, 103*time.Second, took("c"))
		require.Zero(t, took("b"))
	})
}
