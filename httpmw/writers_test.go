package httpmw_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/httpmw"
)

// asks are what net/http, ResponseController, ReverseProxy, x/net/http2 and middlewares (chi,
// gin, negroni, httpsnoop, gorilla, gzhttp) ask of a writer, and of the body of a request.
var asks = map[string]func(w http.ResponseWriter, r *http.Request) any{
	"Flusher":          does[http.Flusher],
	"Hijacker":         does[http.Hijacker],
	"Pusher":           does[http.Pusher],
	"CloseNotifier":    does[http.CloseNotifier],
	"ReaderFrom":       does[io.ReaderFrom],
	"StringWriter":     does[io.StringWriter],
	"FlushError":       does[interface{ FlushError() error }],
	"SetReadDeadline":  does[interface{ SetReadDeadline(time.Time) error }],
	"SetWriteDeadline": does[interface{ SetWriteDeadline(time.Time) error }],
	"EnableFullDuplex": does[interface{ EnableFullDuplex() error }],
	"a read deadline": func(w http.ResponseWriter, _ *http.Request) any {
		return http.NewResponseController(w).SetReadDeadline(time.Time{})
	},
	"a write deadline": func(w http.ResponseWriter, _ *http.Request) any {
		return http.NewResponseController(w).SetWriteDeadline(time.Time{})
	},
	"full duplex": func(w http.ResponseWriter, _ *http.Request) any {
		return http.NewResponseController(w).EnableFullDuplex()
	},
	"a push": func(w http.ResponseWriter, _ *http.Request) any {
		p, ok := w.(http.Pusher)
		return ok && p.Push("/", nil) != nil
	},
	"a flush": func(w http.ResponseWriter, _ *http.Request) any { return http.NewResponseController(w).Flush() },
	"a hijacked conn": func(w http.ResponseWriter, _ *http.Request) any {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		defer conn.Close()
		_, half := conn.(interface{ CloseWrite() error })
		_, copies := conn.(io.ReaderFrom)
		_, raw := conn.(syscall.Conn)
		return []bool{half, copies, raw}
	},
	"no body":  func(_ http.ResponseWriter, r *http.Request) any { return r.Body == http.NoBody },
	"WriterTo": func(_ http.ResponseWriter, r *http.Request) any { _, ok := r.Body.(io.WriterTo); return ok },
	"length": func(_ http.ResponseWriter, r *http.Request) any {
		return []any{r.ContentLength, r.TransferEncoding, len(r.Trailer), r.GetBody == nil}
	},
	"too long": func(w http.ResponseWriter, r *http.Request) any {
		_, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2))
		if err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		return fmt.Sprint(err)
	},
	"read twice": func(_ http.ResponseWriter, r *http.Request) any {
		all, err := io.ReadAll(r.Body)
		n, after := r.Body.Read(make([]byte, 1))
		return []any{string(all), err, n, after}
	},
	"read after Close": func(_ http.ResponseWriter, r *http.Request) any {
		err := r.Body.Close()
		_, after := r.Body.Read(make([]byte, 1))
		return fmt.Sprint(err, after)
	},
	"a file": func(w http.ResponseWriter, r *http.Request) any { http.ServeFile(w, r, "options_test.go"); return nil },
	"a proxy's flush": func(w http.ResponseWriter, r *http.Request) any {
		proxy := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, FlushInterval: -1,
			Transport: answering(func(out *http.Request) (*http.Response, error) {
				var got []byte
				var err error
				if out.Body != nil {
					got, err = io.ReadAll(out.Body)
				}
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}, "X-Got": {fmt.Sprint(len(got), err)}}, Body: io.NopCloser(strings.NewReader("proxied")),
					ContentLength: -1, Trailer: http.Header{"X-End": {"end"}}}, nil
			})}
		proxy.ServeHTTP(w, r)
		return nil
	},
}

// more are methods that a writer may have within a limit that the one around it has not: they
// do what Flush, Write and http.ResponseController do.
var more = map[string]bool{"FlushError": true, "StringWriter": true, "SetReadDeadline": true, "SetWriteDeadline": true, "EnableFullDuplex": true}

type answering func(*http.Request) (*http.Response, error)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func does[T any](w http.ResponseWriter, _ *http.Request) any { _, ok := w.(T); return ok }

// TestC1_WritersAndBodiesAnswerAlike: a handler that asks the writer or the body gets the same
// answer within a limit as without, on the servers of net/http and behind common middlewares; and
// so does the client.
func TestC1_WritersAndBodiesAnswerAlike(t *testing.T) {
	around := map[string]func(http.ResponseWriter) http.ResponseWriter{
		"net/http": func(w http.ResponseWriter) http.ResponseWriter { return w },
		"hidden":   func(w http.ResponseWriter) http.ResponseWriter { return hidden{w} },
		"unwraps":  func(w http.ResponseWriter) http.ResponseWriter { return unwrapper{w} },
		"logger": func(w http.ResponseWriter) http.ResponseWriter {
			if rf, ok := w.(io.ReaderFrom); ok {
				return likeChi{withBoth{withFlush{plain{w}, w.(http.Flusher)}, w.(http.Hijacker)}, rf}
			}
			return likeChi2{withFlush{plain{w}, w.(http.Flusher)}, w.(http.Pusher)}
		},
		"gin": func(w http.ResponseWriter) http.ResponseWriter {
			if h, ok := w.(http.Hijacker); ok {
				return likeGin{withBoth{withFlush{plain{w}, w.(http.Flusher)}, h}, w.(http.CloseNotifier)}
			}
			return likeHTTP2{withFlush{plain{w}, w.(http.Flusher)}, w.(http.Pusher), w.(http.CloseNotifier)}
		},
	}
	limits := map[string]func(http.Handler) http.Handler{
		"a slot":  httpmw.Limit(newSlots(9), key("k"), httpmw.WithHeaders(httpmw.None)),
		"a lease": httpmw.Limit(newSlots(9), key("k"), httpmw.WithHeaders(httpmw.None), httpmw.WithLeaseInContext()),
		"refunds": httpmw.Limit(admitting(), key("k"), httpmw.WithHeaders(httpmw.None), httpmw.WithRefundIf(func(int) bool { return false })),
		"twice": func(h http.Handler) http.Handler {
			limit := httpmw.Limit(newSlots(9), key("k"), httpmw.WithHeaders(httpmw.None))
			return limit(limit(h))
		},
	}
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			answer := make(chan any, 1)
			var h http.Handler
			url, client := start(t, protocol, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
			client.Transport.(*http.Transport).DisableKeepAlives = protocol == "HTTP/1.1"
			ask := func(name, outer string, limit func(http.Handler) http.Handler, body io.Reader) []any {
				h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						answer <- asks[name](w, r)
						_, _ = io.Copy(io.Discard, r.Body)
					})).ServeHTTP(around[outer](w), r)
				})
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
				require.NoError(t, err)
				resp, err := client.Do(r)
				got := <-answer
				if err != nil { // the connection was hijacked, or closed before the body was sent
					return []any{got}
				}
				all, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				resp.Header.Del("Date")
				return []any{got, resp.StatusCode, resp.Header, string(all), err, resp.Trailer, resp.Close, resp.ContentLength}
			}
			for name := range asks {
				for outer := range around {
					for kind, body := range map[string]func() io.Reader{
						"none": func() io.Reader { return nil }, "sized": func() io.Reader { return strings.NewReader("body") },
						"chunked": func() io.Reader { return io.MultiReader(strings.NewReader("body")) },
					} {
						want := ask(name, outer, func(h http.Handler) http.Handler { return h }, body())
						for within, limit := range limits {
							got := ask(name, outer, limit, body())
							if more[name] && want[0] == false {
								got[0] = false
							}
							whole := min(len(want), len(got))
							assert.Equal(t, want[:whole], got[:whole], "%s of %s with a body %s within %s", name, outer, kind, within)
						}
					}
				}
			}
		})
	}
}
