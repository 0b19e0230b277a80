package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
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
			tr := httpmw.Transport(reply(200), l, keyfunc.Global())
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
	_, err := httpmw.Transport(empty, l, keyfunc.Global()).RoundTrip(outgoing(t.Context(), "http://a/"))
	require.NoError(t, err)
	require.Zero(t, l.inFlight(), "there is nothing to read or close")
}

func TestC2_TransportOutcomes(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	refund := httpmw.WithRefundIf(func(s int) bool { return s == 304 })
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
				resp, err := httpmw.Transport(row.server, l, keyfunc.Global(), refund).RoundTrip(outgoing(row.ctx, "http://a/"))
				if err == nil && resp != nil {
					resp.Body.Close()
				}
			})
			require.Zero(t, l.inFlight())
			require.Equal(t, 1, l.released(row.want))
		})
	}
}

// An upgraded connection can be written to.
func TestTransportUpgrade(t *testing.T) {
	l := newSlots(1)
	url, client := start(t, "HTTP/1.1", echo)
	tr := httpmw.Transport(client.Transport, l, keyfunc.Global())
	r := outgoing(t.Context(), url)
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
