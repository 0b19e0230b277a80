package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
)

// The slot is free when the body is read to its end or closed, not before.
func TestC1_TransportHoldsUntilTheBodyEnds(t *testing.T) {
	for name, end := range map[string]func(io.ReadCloser){
		"read":  func(b io.ReadCloser) { io.Copy(io.Discard, b) },
		"close": func(b io.ReadCloser) { b.Close() },
		"both":  func(b io.ReadCloser) { io.Copy(io.Discard, b); b.Close(); b.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			l := newSlots(1)
			tr := client.Transport(reply(200), l, keyfunc.Global())
			resp, err := tr.RoundTrip(outgoing(t.Context(), "http://a/"))
			require.NoError(t, err)
			require.EqualValues(t, 1, l.inFlight())
			end(resp.Body)
			require.Zero(t, l.inFlight())
			require.Equal(t, 1, l.released(algo.Succeeded))
		})
	}
}

func TestTransportWithoutBody(t *testing.T) {
	l := newSlots(1)
	empty := roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
	})
	_, err := client.Transport(empty, l, keyfunc.Global()).RoundTrip(outgoing(t.Context(), "http://a/"))
	require.NoError(t, err)
	require.Zero(t, l.inFlight(), "there is nothing to read or close")
}

func TestC2_TransportOutcomes(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	refund := client.WithRefundIf(func(s int) bool { return s == 304 })
	for _, row := range []struct {
		name   string
		server roundTrip
		ctx    context.Context
		want   algo.Outcome
	}{
		{"404", reply(404), t.Context(), algo.Succeeded},
		{"429", reply(429), t.Context(), algo.Failed},
		{"500", reply(500), t.Context(), algo.Failed},
		{"refunded", reply(304), t.Context(), algo.Canceled},
		{"error", func(*http.Request) (*http.Response, error) { return nil, io.EOF }, t.Context(), algo.Failed},
		{"nothing", func(*http.Request) (*http.Response, error) { return nil, nil }, t.Context(), algo.Failed},
		{"panic", func(*http.Request) (*http.Response, error) { panic("boom") }, t.Context(), algo.Failed},
		{"canceled", func(*http.Request) (*http.Response, error) { cancel(); return nil, context.Canceled }, gone, algo.Failed | algo.Untimed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newSlots(1)
			quietly(func() {
				resp, err := client.Transport(row.server, l, keyfunc.Global(), refund).RoundTrip(outgoing(row.ctx, "http://a/"))
				if err == nil && resp != nil {
					resp.Body.Close()
				}
			})
			require.Zero(t, l.inFlight())
			require.Equal(t, 1, l.released(row.want))
		})
	}
}

// quietly runs f, which may panic.
func quietly(f func()) {
	defer func() { _ = recover() }()
	f()
}

// echo upgrades a connection and answers what it reads.
var echo = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	io.Copy(conn, rw)
})

// An upgraded connection can be written to.
func TestTransportUpgrade(t *testing.T) {
	l := newSlots(1)
	server := httptest.NewServer(echo)
	defer server.Close()
	tr := client.Transport(server.Client().Transport, l, keyfunc.Global())
	r := outgoing(t.Context(), server.URL)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	resp, err := tr.RoundTrip(r)
	require.NoError(t, err)
	require.EqualValues(t, 1, l.inFlight())
	conn := resp.Body.(io.ReadWriteCloser)
	fmt.Fprint(conn, "hello\n")
	line := make([]byte, 6)
	_, err = io.ReadFull(conn, line)
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(line))
	require.NoError(t, conn.Close())
	require.Zero(t, l.inFlight())
}
