package httpmw_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/guard"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// outers are common middlewares around a limit.
var outers = map[string]func(http.Handler) http.Handler{
	"timeout":     func(h http.Handler) http.Handler { return http.TimeoutHandler(h, 20*time.Millisecond, "") },
	"maxbytes":    func(h http.Handler) http.Handler { return http.MaxBytesHandler(h, 40<<10) },
	"stripprefix": func(h http.Handler) http.Handler { return http.StripPrefix("/", h) },
	"gzip": func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			gz := gzip.NewWriter(w)
			defer gz.Close()
			h.ServeHTTP(zipped{w, gz}, r)
		})
	},
	"logger": func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var seen bytes.Buffer // as long as the handler serves
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.TeeReader(r.Body, &seen), r.Body}
			h.ServeHTTP(w, r)
			seen.Reset()
		})
	},
	"buffer": func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			w.WriteHeader(rec.Code)
			_, _ = rec.Body.WriteTo(w)
		})
	},
	"hidden": func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(hidden{w}, r) })
	},
}

type zipped struct {
	http.ResponseWriter
	gz *gzip.Writer
}

func (z zipped) Write(p []byte) (int, error) { return z.gz.Write(p) }
func (z zipped) Unwrap() http.ResponseWriter { return z.ResponseWriter }

// inners are handlers within a limit.
var inners = map[string]http.HandlerFunc{
	"answers": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") },
	"reads": func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	},
	"streams": func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < 20 && r.Context().Err() == nil; i++ {
			_, _ = fmt.Fprintln(w, i)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
	},
	"echoes": func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	},
	"large": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, bytes.NewReader(make([]byte, 200<<10)))
	},
	"panics": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begin")
		panic(http.ErrAbortHandler)
	},
	"hijacks": func(w http.ResponseWriter, _ *http.Request) {
		if conn, rw, err := http.NewResponseController(w).Hijack(); err == nil {
			go func() {
				defer conn.Close()
				_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				_ = rw.Flush()
			}()
		}
	},
}

// clients send a request to path, some of them rudely.
var clients = map[string]func(c *caller, path string){
	"gets": func(c *caller, path string) { c.send(path, nil, time.Minute) },
	"posts": func(c *caller, path string) {
		c.send(path, strings.NewReader(strings.Repeat("x", 60<<10)), time.Minute)
	},
	"slow body": func(c *caller, path string) { c.send(path, &drip{left: 5}, time.Minute) },
	"hangs up":  func(c *caller, path string) { c.send(path, nil, time.Duration(c.rnd.IntN(10))*time.Millisecond) },
	"leaves body": func(c *caller, path string) {
		c.send(path, &drip{left: 1000}, time.Duration(c.rnd.IntN(20))*time.Millisecond)
	},
	"expects": func(c *caller, path string) {
		c.raw("POST "+path+" HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", "begin", false)
	},
	"half closes": func(c *caller, path string) { c.raw("GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n", "", true) },
	"half a body": func(c *caller, path string) {
		c.raw("POST "+path+" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n", "", true)
	},
}

// drip is a body that comes slowly.
type drip struct{ left int }

func (d *drip) Read(p []byte) (int, error) {
	if d.left--; d.left < 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Millisecond)
	return copy(p, "drop"), nil
}

// caller is a client of a server.
type caller struct {
	url   string
	http  *http.Client
	http1 bool
	rnd   *rand.Rand
}

// send makes a request that is given up after patience. It expects 100-continue at times.
func (c *caller) send(path string, body io.Reader, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	r, _ := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if body != nil && c.rnd.IntN(2) == 0 {
		r.Header.Set("Expect", "100-continue")
	}
	if resp, err := c.http.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// raw sends bytes on a connection, and the rest after the first answer; over HTTP/2 a request.
func (c *caller) raw(first, rest string, halfClose bool) {
	if !c.http1 {
		c.send(strings.Fields(first)[1], strings.NewReader(rest), time.Minute)
		return
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond)) // net/http may wait for a body that it did not ask for
	_, _ = io.WriteString(conn, first)
	if halfClose {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err == nil && resp.StatusCode == http.StatusContinue {
		_, _ = io.WriteString(conn, rest)
		resp, err = http.ReadResponse(in, nil)
	}
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
	}
}

// TestC1_Chaos: whatever is around a limit, within it and at the other end of the connection, the
// process lives, and no slot and no goroutine is left.
func TestC1_Chaos(t *testing.T) {
	for _, protocol := range protocols[:2] {
		t.Run(protocol, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			var logged lockedBuilder
			slots := algo.Must(adaptive.New(adaptive.Fixed(12), adaptive.WithQueue(adaptive.FIFO(4, 5*time.Millisecond))))
			perKey := algo.Must(adaptive.PerKey(20))
			var holds sync.WaitGroup
			var served, denied atomic.Int64
			limit := httpmw.Limits([]httpmw.Policy{
				{Name: "key", Limiter: perKey, Key: key("k")},
				{Name: "failures", Limiter: guard.FailuresOnly(bucket(t, algo.PerSecond(2000))), Key: key("k")},
				{Name: "paced", Limiter: bucket(t, algo.PerSecond(2000), algo.MaxWait(time.Second)), Key: key("k")},
				{Name: "slots", Limiter: slots, Key: key("")},
			}, httpmw.WithLeaseInContext(), httpmw.WithRefundIf(func(status int) bool { return status == http.StatusNotFound }),
				httpmw.WithDenied(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					denied.Add(1)
					w.WriteHeader(http.StatusServiceUnavailable)
					_, _ = io.Copy(io.Discard, r.Body)
				})))
			mux, paths := http.NewServeMux(), []string(nil)
			for outer, around := range outers {
				for inner, h := range inners {
					path := "/" + outer + "/" + inner
					mux.Handle(path, around(limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						served.Add(1)
						h(w, r)
					}))))
					paths = append(paths, path)
				}
			}
			t.Run("serves", func(t *testing.T) {
				url, client := start(t, protocol, mux, &logged)
				client.Transport.(*http.Transport).ExpectContinueTimeout = 10 * time.Millisecond
				work := make(chan func(*caller))
				for i := range 24 {
					holds.Go(func() {
						c := &caller{url, client, protocol == "HTTP/1.1", rand.New(rand.NewPCG(uint64(i), 1))}
						for do := range work {
							do(c)
						}
					})
				}
				for range max(cases.Count(2, 100), 1) {
					for _, path := range paths {
						for _, call := range clients {
							work <- func(c *caller) { call(c, path) }
						}
					}
				}
				close(work)
				holds.Wait()
				(&caller{url: url, http: client}).send("/hidden/answers", nil, time.Minute) // it still serves
			})
			require.Eventually(t, func() bool { return slots.InFlight() == 0 && perKey.InFlight("k") == 0 }, 10*time.Second, time.Millisecond)
			slots.Close()
			require.NotContains(t, logged.String(), "panic")
			goleak.VerifyNone(t, before)
			t.Logf("C1: %s: %d handlers, %d requests served, %d denied", protocol, len(paths), served.Load(), denied.Load())
		})
	}
}

// panicsBeside is a body that is read only while its handler serves.
type panicsBeside struct {
	io.ReadCloser
	serving *atomic.Bool
}

func (b panicsBeside) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.serving.Load() {
		panic("read after the handler has returned")
	}
	return n, err
}

// hidden is a writer without Unwrap.
type hidden struct{ http.ResponseWriter }

// TestNothingReadsAfterTheHandler: behind a writer that shows nothing of the connection too.
func TestNothingReadsAfterTheHandler(t *testing.T) {
	limited := httpmw.Limit(denying(algo.Quota, time.Second), key("k"), httpmw.WithDenied(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) })))(unreachable(t))
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var serving atomic.Bool
		serving.Store(true)
		defer serving.Store(false)
		r.Body = panicsBeside{r.Body, &serving}
		limited.ServeHTTP(hidden{w}, r)
	})
	for range 3 {
		require.Contains(t, answers(t, outer, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000\r\n\r\nbegin", strings.Repeat("x", 995)), "HTTP/1.1 429")
	}
}
