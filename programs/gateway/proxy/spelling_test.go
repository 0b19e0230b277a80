package proxy_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// send sends a request with a target as it is written, and returns the status.
func (r *rig) send(method, target string, headers ...string) int {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
	require.NoError(r.t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 0\r\n%s\r\n", method, target, strings.Join(headers, "\r\n")+strings.Repeat("\r\n", min(1, len(headers))))
	require.NoError(r.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	return resp.StatusCode
}

// lenient is a login behind a framework that treats many spellings of a path alike, and
// lets a header choose the method.
func lenient(logins *int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		for _, name := range []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"} {
			if as := r.Header.Get(name); as != "" {
				method = as
			}
		}
		path, _ := url.PathUnescape(r.URL.EscapedPath())
		path, _, _ = strings.Cut(path, ";")
		if method == http.MethodPost && strings.EqualFold(strings.Trim(path, "/"), "login") {
			*logins++
		}
	}
}

// A limit of a route marked any_spelling holds for each spelling of its path together, and
// nobody but a trusted proxy chooses another method by a header.
func TestAnySpelling(t *testing.T) {
	spellings := []string{"/login", "/login/", "/LOGIN", "/Login//", "/login%2F", "/login%2f", "/%6Cogin", "/%256Cogin", "/login;a=b", "/;x/login", "/..;/login", "/x/..;a/login/", "/login;", "/%4COGIN;a=b/", "/x/%2e%2e/login"}
	logins := 0
	r := newRig(t, `
routes:
  - {pattern: /, upstream: UPSTREAM}
  - pattern: POST /login
    upstream: UPSTREAM
    any_spelling: true
    limits: [{name: login, key: [ip, route], limit: sliding-log 2/h}]
`, lenient(&logins))
	for _, target := range spellings {
		r.send("POST", target)
	}
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_HTTP_METHOD_OVERRIDE"} {
		r.send("PUT", "/login", name+": POST")
		r.send("GET", "/login", name+": POST")
	}
	require.Equal(t, 2, logins)
	require.Equal(t, http.StatusOK, r.send("POST", "/logins"), "another path")
	require.Equal(t, http.StatusOK, r.send("GET", "/LOGIN"), "another method")
}

// The upstream gets the path that the client sent, a subtree holds for what is below it,
// and parts of the path that are keys are one key in every spelling.
func TestAnySpellingOfSubtrees(t *testing.T) {
	var got string
	r := newRig(t, `
routes:
  - {pattern: /, upstream: UPSTREAM}
  - pattern: /users/{user}/
    upstream: UPSTREAM
    any_spelling: true
    limits: [{name: user, key: "path:user", limit: 2/h}]
  - {pattern: /users/ann/photo, upstream: UPSTREAM}
`, func(_ http.ResponseWriter, r *http.Request) { got = r.RequestURI })
	require.Equal(t, http.StatusOK, r.send("GET", "/users/ann/x"))
	require.Equal(t, http.StatusOK, r.send("GET", "/USERS/Ann;v=1/X?q=1"))
	require.Equal(t, "/USERS/Ann;v=1/X?q=1", got)
	require.Equal(t, http.StatusTooManyRequests, r.send("GET", "/users//aNN"))
	require.Equal(t, http.StatusOK, r.send("GET", "/users/bob/x"))
	require.Equal(t, http.StatusOK, r.send("GET", "/users/ann/photo"), "a more specific route")
}
