package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInformationalResponses: the fields of limits outlast 100 Continue and 103 Early Hints of
// the upstream, whose own fields stay as they are. HTTP/1.0 gets no informational response.
func TestInformationalResponses(t *testing.T) {
	r := newRig(t, "routes: [{pattern: /, upstream: UPSTREAM, limits: [{name: a, key: global, limit: 100/h}]}]\n",
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			if r.URL.Path == "/hints" {
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusEarlyHints)
			}
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(body)
		})
	for _, tc := range []struct {
		request string
		want    []int
	}{
		{"GET /hints HTTP/1.1\r\nHost: h\r\n\r\n", []int{103, 103, 200}},
		{"GET /hints HTTP/1.0\r\nHost: h\r\n\r\n", []int{200}},
		{"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody", []int{100, 200}},
		{"POST / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody", []int{200}},
	} {
		conn, err := net.Dial("tcp", r.front.Listener.Addr().String())
		require.NoError(t, err)
		_, err = fmt.Fprint(conn, tc.request)
		require.NoError(t, err)
		var got []int
		for reader := bufio.NewReader(conn); len(got) == 0 || got[len(got)-1] < http.StatusOK; {
			resp, err := http.ReadResponse(reader, nil)
			require.NoError(t, err)
			got = append(got, resp.StatusCode)
			if resp.StatusCode >= http.StatusOK {
				require.Len(t, resp.Header.Values("RateLimit"), 1, tc.request)
				require.Len(t, resp.Header.Values("RateLimit-Policy"), 1, tc.request)
				require.Len(t, resp.Header.Values("Link"), 1, tc.request)
			}
		}
		require.Equal(t, tc.want, got, tc.request)
		require.NoError(t, conn.Close())
	}
}
