package httpmw_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// protocols are those that servers are started with.
var protocols = []string{"HTTP/1.1", "HTTP/2", "h2c"}

// start serves h on a real socket until the test ends.
func start(t *testing.T, protocol string, h http.Handler) (url string, client *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	switch protocol {
	case "HTTP/1.1":
		s.Start()
	case "HTTP/2":
		s.EnableHTTP2 = true
		s.StartTLS()
	case "h2c":
		only := new(http.Protocols)
		only.SetUnencryptedHTTP2(true)
		s.Config.Protocols = only
		s.Start()
		transport := &http.Transport{Protocols: only}
		t.Cleanup(transport.CloseIdleConnections)
		return s.URL, &http.Client{Transport: transport}
	}
	return s.URL, s.Client()
}
