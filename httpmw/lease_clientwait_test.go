package httpmw_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/adaptive/strategy"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/keyfunc"
)

// tuned are the strategies that learn from the time that work takes.
var tuned = map[string]func() adaptive.Strategy{
	"Default":   func() adaptive.Strategy { return adaptive.Default() },
	"BBR":       func() adaptive.Strategy { return strategy.BBR() },
	"Gradient2": func() adaptive.Strategy { return strategy.Gradient2() },
	"AIMD":      func() adaptive.Strategy { return strategy.AIMD(strategy.WithTimeout(500 * time.Millisecond)) },
	"Vegas":     func() adaptive.Strategy { return strategy.Vegas() },
}

// site is a small service: a page, a form that reads its body, and a stream.
func site() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "page") })
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		io.WriteString(w, "thanks")
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("GET /poll", func(_ http.ResponseWriter, r *http.Request) {
		algo.LeaseFrom(r.Context()).AwaitClient(true)
		select {
		case <-r.Context().Done():
		case <-time.After(2 * time.Second):
		}
	})
	mux.HandleFunc("GET /large", func(w http.ResponseWriter, r *http.Request) {
		for err := error(nil); err == nil; {
			_, err = w.Write(make([]byte, 1<<16))
		}
	})
	return mux
}

// attack opens a connection and sends the head of a request, which keeps its
// handler waiting until the connection is closed or its body is sent.
func attack(url, head string) (net.Conn, error) {
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(c, head)
	return c, err
}

// visit requests the page and returns the status.
func visit(client *http.Client, url string) (int, error) {
	resp, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

const (
	slowBody = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"
	sse      = "GET /events HTTP/1.1\r\nHost: a\r\n\r\n"
	large    = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"
	poll     = "GET /poll HTTP/1.1\r\nHost: a\r\n\r\n"
)

// TestClientsThatMakeTheServerWait: a service with few requests denies none of
// them because others wait for their clients: for a body of one byte, three of
// them begun in each second and each on its way for two; for events; for a
// response to be read; in a long poll. Other tests may fill the processors meanwhile, which
// Default denies for, rightly.
func TestClientsThatMakeTheServerWait(t *testing.T) {
	cases.Slow(t)
	t.Parallel()
	var all sync.WaitGroup
	for name, strategy := range tuned {
		for kind, head := range map[string]string{"slow bodies": slowBody, "events": sse, "unread responses": large, "long polls": poll} {
			l := algo.Must(adaptive.New(strategy()))
			url, client := start(t, "HTTP/1.1", httpmw.Limit(l, keyfunc.Global(), httpmw.WithLeaseInContext())(site()))
			for range 120 {
				_, err := visit(client, url)
				require.NoError(t, err)
			}
			all.Go(func() {
				denied := uint64(0)
				for _, s := range besideClients(t, url, client, head) {
					if s != http.StatusOK {
						denied++
					}
				}
				// Those that keep it waiting may be denied for the processors, too.
				assert.LessOrEqual(t, denied, l.Explain().Denied.Processor, "%s, %s: %v", name, kind, l.Explain())
			})
		}
	}
	all.Wait()
}

// besideClients has visits for nine seconds, 20 a second at first and then one in two
// seconds, beside requests with a head that come three times a second. It returns
// the statuses.
func besideClients(t *testing.T, url string, client *http.Client, head string) (statuses []int) {
	again := func() {
		status, err := visit(client, url)
		assert.NoError(t, err)
		statuses = append(statuses, status)
	}
	attacks, visits := time.NewTicker(time.Second/3), time.NewTicker(50*time.Millisecond)
	defer attacks.Stop()
	defer visits.Stop()
	var begun []net.Conn
	defer func() {
		for _, c := range begun {
			_ = c.Close()
		}
	}()
	for end := time.After(9 * time.Second); ; {
		select {
		case <-attacks.C:
			c, err := attack(url, head)
			if !assert.NoError(t, err) {
				return statuses
			}
			if begun = append(begun, c); head == slowBody && len(begun) > 6 {
				_, err := io.WriteString(begun[len(begun)-7], "x")
				assert.NoError(t, err)
			}
		case <-visits.C:
			if again(); len(statuses) == 60 {
				visits.Reset(2 * time.Second)
			}
		case <-end:
			return statuses
		}
	}
}

// clientLog is a limiter that follows waits for clients.
type clientLog struct {
	mu    sync.Mutex
	waits []bool
}

func (l *clientLog) Acquire(_ context.Context, _ string, n int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision{Allowed: true}, l, algo.Handle{N: n}), nil
}

func (l *clientLog) Release(algo.Handle, algo.Outcome) { l.AwaitClient(nil, false) }
func (l *clientLog) Settle(algo.Handle, int64)         {}
func (l *clientLog) ReleaseAfterWait(h algo.Handle, o algo.Outcome, _ time.Duration) {
	l.Release(h, o)
}
func (l *clientLog) AwaitClient(_ *algo.Handle, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = append(l.waits, waits)
}

// TestWaitsForTheClient: which parts of a request wait for its client. The last
// entry is the release.
func TestWaitsForTheClient(t *testing.T) {
	head := func(name, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(name, value)
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
		}
	}
	for name, row := range map[string]struct {
		h    http.HandlerFunc
		want []bool
	}{
		"nothing":                         {func(http.ResponseWriter, *http.Request) {}, []bool{false}},
		"its body, in a read":             {func(_ http.ResponseWriter, r *http.Request) { _, _ = r.Body.Read(make([]byte, 10)) }, []bool{true, false, false}},
		"an event stream, to its end":     {head("Content-Type", "text/event-stream"), []bool{true, false, false}},
		"a response in parts, to its end": {head("X-A", "b"), []bool{true, false, false}},
		"a flush of a response of known length": {func(w http.ResponseWriter, r *http.Request) {
			head("Content-Length", "1")(w, r)
			head("Content-Length", "1")(w, r)
		}, []bool{true, false, true, false, false}},
		"a small response": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2048)) }, []bool{false}},
		"a large response, in a write": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 2049))
			_, _ = io.WriteString(w, "x")
		}, []bool{true, false, true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var l clientLog
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x"))
			serve(httpmw.Limit(&l, key("k"))(row.h), r)
			require.Equal(t, row.want, l.waits)
		})
	}
}

// TestC1_AStreamReleasedByItsHandler: a handler that releases the lease of its stream frees the
// slot once, at once, and leaves the limit as it was.
func TestC1_AStreamReleasedByItsHandler(t *testing.T) {
	bucket := bucket(t, algo.PerSecond(1000))
	for name, wrap := range map[string]func(algo.Limiter) algo.Limiter{
		"alone": func(l algo.Limiter) algo.Limiter { return l },
		"all":   func(l algo.Limiter) algo.Limiter { return algo.All(bucket, l) },
	} {
		l := algo.Must(adaptive.New(strategy.AIMD(adaptive.WithLimits(1, 2), strategy.WithInitial(2))))
		url, client := start(t, "HTTP/1.1", httpmw.Limit(wrap(l), keyfunc.Global(), httpmw.WithLeaseInContext())(
			http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
				assert.Equal(t, 1, l.Explain().AtClient)
				algo.LeaseFrom(r.Context()).Release(algo.Succeeded)
				assert.Zero(t, l.InFlight())
				assert.Equal(t, 2, room(t, l))
			})))
		for range 3 {
			resp, err := client.Get(url)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
			require.NoError(t, resp.Body.Close())
		}
		require.Equal(t, 2, room(t, l), name)
	}
}

// room is how many requests l admits at once.
func room(t *testing.T, l algo.Limiter) (n int) {
	for ; n < 100; n++ {
		lease, err := l.Acquire(context.Background(), "", 1)
		assert.NoError(t, err)
		if !lease.Allowed {
			break
		}
		defer lease.Release(algo.Failed | algo.Untimed)
	}
	return n
}

// TestC1_SettlingWhileABodyIsRead: the handler settles while another goroutine reads the body.
func TestC1_SettlingWhileABodyIsRead(t *testing.T) {
	l := algo.Must(adaptive.New(strategy.AIMD(adaptive.WithLimits(1, 9), strategy.WithInitial(9))))
	h := httpmw.Limit(l, keyfunc.Global(), httpmw.WithLeaseInContext())(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var all sync.WaitGroup
			all.Go(func() { _, _ = io.Copy(io.Discard, r.Body) })
			algo.LeaseFrom(r.Context()).Settle(3)
			all.Wait()
		}))
	serve(h, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("x")))
	require.Zero(t, l.InFlight())
	require.Equal(t, 9, room(t, l))
}

// TestACopyWaitsForTheClientAndItsSource: reading from another service is work.
func TestACopyWaitsForTheClientAndItsSource(t *testing.T) {
	var l clientLog
	reading := make(chan []bool, 10)
	url, client := start(t, "HTTP/1.1", httpmw.Limit(&l, key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.(io.ReaderFrom).ReadFrom(iotest.DataErrReader(readerFunc(func([]byte) (int, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			reading <- slices.Clone(l.waits)
			return 0, io.EOF
		})))
	})))
	status, err := visit(client, url)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, []bool{true, false}, <-reading)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
