package proxy_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a gateway on a socket before an upstream on another one.
type rig struct {
	t        *testing.T
	upstream *httptest.Server
	gateway  *proxy.Gateway
	front    *httptest.Server
	events   chan telemetry.Event
}

// newRig serves a file in which UPSTREAM is replaced by the address of the
// upstream.
func newRig(t *testing.T, file string, upstream http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{t: t, upstream: httptest.NewServer(upstream), events: make(chan telemetry.Event, 1000)}
	var err error
	r.gateway, err = proxy.New(r.parse(file), proxy.Options{
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Observe: func(e telemetry.Event) {
			select {
			case r.events <- e:
			default: // unread events are lost
			}
		},
	})
	require.NoError(t, err)
	r.front = httptest.NewServer(r.gateway)
	t.Cleanup(func() {
		r.front.Close()
		r.gateway.Close()
		r.upstream.Close()
	})
	return r
}

func (r *rig) parse(file string) *config.File {
	r.t.Helper()
	f, err := config.Parse("f", []byte(strings.ReplaceAll(file, "UPSTREAM", r.upstream.URL)))
	require.NoError(r.t, err)
	return f
}

// get asks for a path with headers in pairs.
func (r *rig) get(path string, headers ...string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.front.URL+path, nil)
	require.NoError(r.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := r.front.Client().Do(req)
	require.NoError(r.t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	resp.Body = io.NopCloser(strings.NewReader(string(body)))
	return resp
}

func (r *rig) status(path string, headers ...string) int {
	r.t.Helper()
	return r.get(path, headers...).StatusCode
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }
