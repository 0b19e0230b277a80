package early_test

import (
	"fmt"
	"net"
	"net/http"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/early"
	"github.com/sluice-go/sluice/keyfunc"
)

// A service of short handlers denies at the socket while it is overloaded.
func ExampleNewListener() {
	l := algo.Must(adaptive.New(adaptive.Default()))
	srv := &http.Server{Handler: httpmw.Limit(l, keyfunc.Global())(http.NotFoundHandler())}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	listener := early.NewListener(srv, ln, l, "/healthz")
	go func() { _ = srv.Serve(listener) }()
	defer srv.Close()

	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get("http://" + ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = resp.Body.Close()
	fmt.Println(resp.StatusCode, listener.Denied())
	// Output: 404 0
}
