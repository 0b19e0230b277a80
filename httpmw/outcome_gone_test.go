package httpmw_test

import (
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/signal"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/hints"
)

// The ways in which a client leaves. Each opens a connection of its own, sends a
// request that the upstream would answer, and hangs up before that.
var hangUps = map[string]string{
	"GET":                "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST, body missing": "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nbegin",
	"POST, chunked":      "POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegin\r\n",
	"in the answer":      "GET /long HTTP/1.1\r\nHost: a\r\n\r\n",
}

// proxyTo is a reverse proxy as the standard library has it.
func proxyTo(t *testing.T, upstream http.Handler) http.Handler {
	s := httptest.NewServer(upstream)
	t.Cleanup(s.Close)
	target, err := url.Parse(s.URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{DisableKeepAlives: true} // a failure on a shared one fails the next request too
	t.Cleanup(transport.CloseIdleConnections)
	proxy.Transport, proxy.ErrorLog = transport, quietLog
	return proxy
}

// idle is a processor that the other tests do not load.
var idle = signal.Func(func() (float64, bool) { return 0, true })

// Clients that hang up, at a proxy whose handlers fail then, lower no adaptive
// limit, and no honest request is denied.
func TestC2_HangUpsTeachNothing(t *testing.T) {
	t.Parallel()
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/long" {
			for range 100 {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	})
	for name, strategy := range map[string]func() adaptive.Strategy{
		"AIMD": func() adaptive.Strategy { return strategy.AIMD(adaptive.WithLimits(5, 200), strategy.WithInitial(200)) },
		"Vegas": func() adaptive.Strategy {
			return strategy.Vegas(adaptive.WithLimits(1, 200), strategy.WithInitial(200))
		},
		"BBR":     func() adaptive.Strategy { return strategy.BBR(strategy.WithSignal(idle)) },
		"Default": func() adaptive.Strategy { return adaptive.Default(adaptive.WithTarget(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			limiter, err := adaptive.New(strategy())
			require.NoError(t, err)
			before := limiter.Limit()
			outcomes := &recorded{Limiter: limiter}
			base, client := start(t, "HTTP/1.1", httpmw.Limit(outcomes, key(""))(proxyTo(t, upstream)))
			addr := strings.TrimPrefix(base, "http://")

			const rounds = 40
			var attack, honest sync.WaitGroup
			for _, request := range hangUps {
				attack.Go(func() {
					for range rounds {
						hangUp(t, addr, request)
					}
				})
			}
			var over atomic.Bool
			var denied, served atomic.Int64
			for range 4 {
				honest.Go(func() {
					for !over.Load() {
						resp, err := client.Get(base + "/")
						if !assertNoError(t, err) {
							return
						}
						resp.Body.Close()
						if resp.StatusCode == http.StatusOK {
							served.Add(1)
						} else {
							denied.Add(1)
						}
					}
				})
			}
			attack.Wait()
			over.Store(true)
			honest.Wait()
			require.Eventually(t, func() bool { return limiter.InFlight() == 0 }, 10*time.Second, time.Millisecond)
			require.Zero(t, outcomes.of(algo.Failed), "hang-ups that count as failures")
			require.Zero(t, denied.Load(), "honest requests that were denied")
			require.NotZero(t, served.Load())
			require.GreaterOrEqual(t, limiter.Limit(), before, "limit after the attack")
		})
	}
}

// hangUp sends a request and leaves before it is served.
func hangUp(t *testing.T, addr, request string) {
	conn, err := net.Dial("tcp", addr)
	if !assertNoError(t, err) {
		return
	}
	_, _ = io.WriteString(conn, request)
	time.Sleep(5 * time.Millisecond)
	_ = conn.Close()
}

func assertNoError(t *testing.T, err error) bool {
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// recorded counts the outcomes of a limiter's leases.
type recorded struct {
	algo.Limiter
	counts [algo.Untimed << 1]atomic.Int64
}

func (r *recorded) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	lease, err := r.Limiter.Acquire(ctx, key, n)
	if !lease.Allowed {
		return lease, err
	}
	inner := &lease
	return algo.NewLease(lease.Decision, &recordedLease{r, inner}, algo.Handle{N: n}), err
}

func (r *recorded) of(o algo.Outcome) int64 { return r.counts[o].Load() }

type recordedLease struct {
	r     *recorded
	inner *algo.Lease
}

func (l *recordedLease) Release(_ algo.Handle, o algo.Outcome) {
	l.r.counts[o].Add(1)
	l.inner.Release(o)
}

func (l *recordedLease) Settle(_ algo.Handle, n int64) { l.inner.Settle(n) }

// The same over HTTP/2, where a client resets its stream.
func TestC2_ResetsTeachNothing(t *testing.T) {
	begun := make(chan struct{}, 1)
	upstream := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	for _, protocol := range []string{"HTTP/2", "h2c"} {
		for name, body := range map[string]func() io.Reader{
			"GET":           func() io.Reader { return nil },
			"POST":          func() io.Reader { return strings.NewReader("body") },
			"POST, endless": func() io.Reader { r, _ := io.Pipe(); return r },
		} {
			t.Run(protocol+"/"+name, func(t *testing.T) {
				l := newSlots(100)
				base, client := start(t, protocol, httpmw.Limit(l, key("k"))(proxyTo(t, upstream)))
				const calls = 10
				for range calls {
					ctx, cancel := context.WithCancel(t.Context())
					go func() {
						<-begun
						cancel()
					}()
					r, _ := http.NewRequestWithContext(ctx, http.MethodPost, base, body())
					_, err := client.Do(r)
					require.ErrorIs(t, err, context.Canceled)
				}
				require.Eventually(t, func() bool { return l.released(algo.Failed|algo.Untimed) == calls }, 10*time.Second, time.Millisecond)
				require.Zero(t, l.released(algo.Failed))
			})
		}
	}
}

// brokenWriter cannot be written to.
type brokenWriter struct{ http.ResponseWriter }

func (brokenWriter) Write([]byte) (int, error) { return 0, net.ErrClosed }

// A connection that fails before its context ends is a client that has left.
func TestC2_BrokenConnectionsTeachNothing(t *testing.T) {
	upload := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(io.ErrUnexpectedEOF))
	for name, row := range map[string]struct {
		handler http.HandlerFunc
		w       http.ResponseWriter
		want    algo.Outcome
	}{
		"body": {func(w http.ResponseWriter, r *http.Request) {
			_, err := r.Body.Read(make([]byte, 1))
			require.Error(t, err)
			w.WriteHeader(502)
		}, httptest.NewRecorder(), algo.Failed | algo.Untimed},
		"body, closed by the handler": {func(w http.ResponseWriter, r *http.Request) {
			r.Body.Close()
			_, _ = r.Body.Read(make([]byte, 1))
			w.WriteHeader(502)
		}, httptest.NewRecorder(), algo.Failed},
		"response": {func(w http.ResponseWriter, _ *http.Request) {
			if _, err := w.Write([]byte("x")); err != nil {
				panic(http.ErrAbortHandler)
			}
		}, brokenWriter{httptest.NewRecorder()}, algo.Failed | algo.Untimed},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSlots(1)
			quietly(func() { httpmw.Limit(l, key("k"))(row.handler).ServeHTTP(row.w, upload) })
			require.Equal(t, 1, l.released(row.want))
		})
	}
}

// A handler that works on after its client has left serves nobody: a limit that took that for a success would
// see no client leave, however long they wait.
func TestC2_AnswersToNobodyAreNoSuccesses(t *testing.T) {
	for name, want := range map[string]algo.Outcome{"GET": algo.Failed | algo.Untimed, "answered before": algo.Succeeded | algo.Untimed} {
		l, served := newSlots(10), make(chan struct{})
		base, _ := start(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(served)
			httpmw.Limit(l, key("k"))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if name != "GET" {
					w.WriteHeader(200)
				}
				<-r.Context().Done()
				_, _ = io.WriteString(w, "done")
			})).ServeHTTP(w, r)
		}))
		hangUp(t, strings.TrimPrefix(base, "http://"), hangUps["GET"])
		<-served
		require.Equal(t, 1, l.released(want), name)
	}
}

// A client that leaves cannot avoid the charge by the failure that it provokes.
func TestHangUpIsNotRefunded(t *testing.T) {
	l := newSlots(10)
	failed := httpmw.WithRefundIf(func(status int) bool { return status >= 500 })
	served := make(chan struct{})
	proxy := proxyTo(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	base, _ := start(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		httpmw.Limit(l, key("k"), failed)(proxy).ServeHTTP(w, r)
	}))
	hangUp(t, strings.TrimPrefix(base, "http://"), hangUps["GET"])
	<-served
	require.Equal(t, 1, l.released(algo.Failed|algo.Untimed))
}

// A failure of the server stays one, also under a request with a body.
func TestC2_FailuresTeach(t *testing.T) {
	for name, upstream := range map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"abort":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"abort in the answer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("begin"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newSlots(10)
			served := make(chan struct{})
			h := httpmw.Limit(l, key("k"))(proxyTo(t, upstream))
			base, client := start(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(served)
				h.ServeHTTP(w, r)
			}))
			resp, err := client.Post(base, "text/plain", strings.NewReader(strings.Repeat("x", 1<<20)))
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			<-served
			require.Equal(t, 1, l.released(algo.Failed))
		})
	}
}

// Responses that last as long as their clients like are streams: some by their
// type, the others by the way they continue.
func TestC2_StreamsTeachNothing(t *testing.T) {
	ticks := func(contentType string, pause time.Duration) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if contentType != "" {
				w.Header().Set("Content-Type", contentType)
			}
			for i := range 3 {
				fmt.Fprintln(w, i)
				w.(http.Flusher).Flush()
				time.Sleep(pause)
			}
		})
	}
	for contentType, pause := range map[string]time.Duration{
		"text/event-stream":                        time.Millisecond,
		"application/x-ndjson":                     time.Millisecond,
		"application/jsonl":                        time.Millisecond,
		"application/geo+json-seq":                 time.Millisecond,
		"application/stream+json":                  time.Millisecond,
		"multipart/x-mixed-replace; boundary=next": time.Millisecond,
		"application/connect+json":                 time.Millisecond,
		"application/vnd.amazon.eventstream":       time.Millisecond,
		"Audio/mpeg":                               time.Millisecond,
		"video/mp4":                                time.Millisecond,
		"application/grpc+proto":                   time.Second,
		"application/grpc-web":                     time.Second,
		"application/octet-stream":                 time.Second,
		"application/json":                         time.Second,
		"":                                         time.Second,
	} {
		t.Run(contentType, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newSlots(10)
				serve(httpmw.Limit(l, key("k"))(ticks(contentType, pause)), get())
				require.Equal(t, 1, l.released(algo.Succeeded|algo.Untimed))
			})
		})
	}
}

// A response that is flushed when it is ready is no stream, and a request is not
// paced by its client because it has a body.
func TestC2_FlushedAnswersTeach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSlots(10)
		h := httpmw.Limit(l, key("k"))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(2 * time.Second)
			_, _ = w.Write([]byte("ready"))
			w.(http.Flusher).Flush()
			time.Sleep(time.Second)
		}))
		serve(h, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body")))
		require.Equal(t, 1, l.released(algo.Succeeded))
	})
}

// A request that its client sends slowly takes as long as the client likes.
func TestC2_SlowUploadsTeachNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSlots(10)
		h := httpmw.Limit(l, key("k"))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(time.Second)
		}))
		body, client := io.Pipe()
		go func() {
			for range 3 {
				time.Sleep(time.Second)
				_, _ = client.Write([]byte("x"))
			}
			client.Close()
		}()
		serve(h, httptest.NewRequest(http.MethodPost, "/", body))
		require.Equal(t, 1, l.released(algo.Succeeded|algo.Untimed))
	})
}

// The files of a form are removed, and the pattern is logged, although the
// handler gets a copy of the request.
func TestFormFilesAreRemoved(t *testing.T) {
	for name, around := range map[string]func(http.Handler) http.Handler{
		"lease in context": httpmw.Limit(newSlots(1), key("k"), httpmw.WithLeaseInContext()),
		"priority":         hints.Priority(func(*http.Request) bool { return true }),
		"denied": func(h http.Handler) http.Handler {
			return httpmw.Limit(denying(algo.Quota, time.Second), key("k"), httpmw.WithDenied(h))(unreachable(t))
		},
	} {
		t.Run(name, func(t *testing.T) { formFilesAreRemoved(t, around) })
	}
}

func formFilesAreRemoved(t *testing.T, around func(http.Handler) http.Handler) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload", func(_ http.ResponseWriter, r *http.Request) {
		assertNoError(t, r.ParseMultipartForm(1))
		files, err := os.ReadDir(dir)
		if assertNoError(t, err) && len(files) != 1 {
			t.Error("the form has no file")
		}
	})
	pattern := make(chan string, 1)
	h := around(mux)
	base, client := start(t, "HTTP/1.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		pattern <- r.Pattern
	}))
	var body strings.Builder
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "name")
	require.NoError(t, err)
	_, err = part.Write(make([]byte, 11<<20))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	req, err := http.NewRequest(http.MethodPost, base+"/upload", strings.NewReader(body.String()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Priority", "u=0")
	resp, err := client.Do(req)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, "POST /upload", <-pattern)
	require.Eventually(t, func() bool {
		files, err := os.ReadDir(dir)
		return err == nil && len(files) == 0
	}, 10*time.Second, time.Millisecond)
}
