package proxy_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Forty changes of the file under load: every request is answered by a limit or
// by the upstream, and an unchanged quota admits exactly its units.
func TestReloadUnderLoad(t *testing.T) {
	const quota = 400
	file := func(i int) string {
		return fmt.Sprintf(`
limits:
  - {name: quota, key: global, limit: 1/h burst %d}
routes:
  - pattern: /
    upstream: UPSTREAM
    limits: [quota]
  - pattern: /other%d
    upstream: UPSTREAM
    limits: [{name: other%d, key: ip, limit: %d/s}]
  - pattern: /same
    upstream: UPSTREAM
    limits: [{name: same, key: ip, limit: %d/h}]
`, quota, i%3, i%3, i+1, 1000+i)
	}
	r := newRig(t, file(0), ok)
	var admitted, denied, other atomic.Int64
	var stop atomic.Bool
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for !stop.Load() {
				resp, err := client.Get(r.front.URL)
				if err != nil {
					other.Add(1)
					continue
				}
				_ = resp.Body.Close()
				switch resp.StatusCode {
				case http.StatusOK:
					admitted.Add(1)
				case http.StatusTooManyRequests:
					denied.Add(1)
				default:
					other.Add(1)
				}
			}
		})
	}
	for i := 1; i <= 40; i++ {
		before := admitted.Load() + denied.Load()
		require.NoError(t, r.gateway.Apply(r.parse(file(i))))
		for admitted.Load()+denied.Load() < before+25 && other.Load() == 0 {
			r.status("/same")
		}
	}
	stop.Store(true)
	clients.Wait()
	require.Zero(t, other.Load(), "requests without an answer")
	require.Equal(t, int64(quota), admitted.Load())
	require.Positive(t, denied.Load())
}

// Requests end under what they began with: a route that is gone goes on for
// those who are in it, and the protection they came through ends after them.
func TestRunningRequestsKeepTheirRoute(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	r := newRig(t, "overload: {max_in_flight: 5}\nroutes: [{pattern: /slow, upstream: UPSTREAM}]", func(w http.ResponseWriter, _ *http.Request) {
		inside <- struct{}{}
		<-leave
		w.WriteHeader(http.StatusTeapot)
	})
	done := make(chan int, 1)
	go func() { done <- r.status("/slow") }()
	<-inside
	require.NoError(t, r.gateway.Apply(r.parse("overload: off\nroutes: [{pattern: /new, upstream: UPSTREAM}]")))
	require.Equal(t, http.StatusNotFound, r.status("/slow"))
	require.Nil(t, r.gateway.Overload())
	close(leave)
	require.Equal(t, http.StatusTeapot, <-done)
}

// What cannot change while the gateway runs is refused by name and line, and
// nothing of the file is in force then.
func TestRefused(t *testing.T) {
	const routes = "routes: [{pattern: /a, upstream: UPSTREAM}]\n"
	r := newRig(t, routes, ok)
	for _, test := range []struct{ file, want string }{
		{"listen: h:1\n", "f:2:1: listen: has changed, which takes a restart"},
		{"admin: h:1\n", "f:2:1: admin: has changed"},
		{"store: redis\nredis: {addresses: ['h:1']}\n", "f:2:1: store: has changed"},
		{"timeouts: {drain: 1s}\n", "f:2:1: timeouts: has changed"},
		{"pepper: {env: GATEWAY_TEST_NOT_SET}\n", "f:2:1: pepper: the environment variable GATEWAY_TEST_NOT_SET is not set"},
	} {
		err := r.gateway.Apply(r.parse("routes: [{pattern: /b, upstream: UPSTREAM}]\n" + test.file))
		require.ErrorContains(t, err, test.want)
		require.Equal(t, http.StatusOK, r.status("/a"))
		require.Equal(t, http.StatusNotFound, r.status("/b"))
	}
	err := r.gateway.Apply(r.parse("domains: [{name: d, descriptors: []}]"))
	require.ErrorContains(t, err, "routes: is missing")
}

// A file whose routes cannot be assembled leaves the limits as they are, too.
func TestFailedAssemblyChangesNothing(t *testing.T) {
	file := func(burst int) string {
		return fmt.Sprintf("routes: [{pattern: /, upstream: UPSTREAM, limits: [{name: a, key: ip, limit: 1/h burst %d}]}]\n", burst)
	}
	r := newRig(t, file(2), ok)
	wrong := r.parse(file(9))
	wrong.Trusted = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")} // no key function trusts all
	require.ErrorContains(t, r.gateway.Apply(wrong), `limit "a"`)
	for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		require.Equal(t, want, r.status("/"))
	}
}
