package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHashesOfInstances: instances that share a pepper name a caller by one hash, in a
// log that is read beside another's and after a restart; others do not.
func TestHashesOfInstances(t *testing.T) {
	t.Setenv("PEPPER", "sixteen bytes or more of it")
	t.Setenv("OTHER", "another secret of sixteen bytes")
	const one = "pepper: {env: PEPPER}\n"
	first, second := deniedHash(t, one), deniedHash(t, one)
	require.Equal(t, first, second)
	require.NotEqual(t, first, deniedHash(t, "pepper: {env: OTHER}\n"))
	require.NotEqual(t, deniedHash(t, ""), deniedHash(t, ""), "without a pepper each process has hashes of its own")
}

// deniedHash runs a gateway, lets a caller be denied and returns the caller's hash.
func deniedHash(t *testing.T, file string) string {
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer upstream.Close()
	p := spawn(t, file+"routes: [{pattern: /, upstream: '"+upstream.URL+"', limits: [{name: one, key: header:X-User, limit: 1/h}]}]\n")
	for range 2 {
		r, err := http.NewRequest(http.MethodGet, p.front, nil)
		require.NoError(t, err)
		r.Header.Set("X-User", "alice")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	hash := regexp.MustCompile(`msg="requests denied".*\bkey=([0-9a-f]{16})`)
	p.end()
	found := hash.FindStringSubmatch(p.log.String())
	require.NotNil(t, found, "no denial in the log: %s", p.log)
	return found[1]
}
