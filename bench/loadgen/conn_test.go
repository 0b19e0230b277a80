package loadgen

import (
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStrangeAnswers: an answer that cannot be parsed is an error at once, not a hang.
// The clients would wait for a minute.
func TestStrangeAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"chunked":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndone\n\r\n0\r\n\r\n",
		"long body":        "HTTP/1.1 200 OK\r\nContent-Length: 4097\r\n\r\n",
		"long with head":   "HTTP/1.1 200 OK\r\nContent-Length: 4090\r\n\r\n",
		"overflowing":      "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n",
		"negative":         "HTTP/1.1 200 OK\r\nContent-Length: -30\r\n\r\n",
		"no number":        "HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\n",
		"head without end": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 5000),
		"old protocol":     "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"no status":        "HTTP/1.1 two hundred\r\nContent-Length: 0\r\n\r\n",
		"short":            "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := shortly(script(t, answer, false), 20)
			answers, err := Run(c)
			require.NoError(t, err)
			require.Equal(t, map[int16]int{Broken: arrivals(c)}, statuses(answers))
			_, err = Closed(c.URL, 2, time.Minute)
			require.ErrorIs(t, err, errStrange)
		})
	}
}

// TestRealChunked: the same from net/http.
func TestRealChunked(t *testing.T) {
	c := shortly(serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		done(w, r)
	}), 20)
	answers, err := Run(c)
	require.NoError(t, err)
	require.Equal(t, map[int16]int{Broken: arrivals(c)}, statuses(answers))
}

// TestLargestAnswer: head and body that fill the buffer to the last byte.
func TestLargestAnswer(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nContent-Length: 4055\r\n\r\n"
	require.Len(t, head, 4096-4055)
	c := shortly(script(t, head+strings.Repeat("x", 4055), false), 50)
	answers, err := Run(c)
	require.NoError(t, err)
	require.Equal(t, map[int16]int{200: arrivals(c)}, statuses(answers))
}

// TestBroken: the server hangs up instead of answering, or in the middle.
func TestBroken(t *testing.T) {
	for _, answer := range []string{"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndo"} {
		c := shortly(script(t, answer, true), 20)
		answers, err := Run(c)
		require.NoError(t, err)
		require.Equal(t, map[int16]int{Broken: arrivals(c)}, statuses(answers))
		_, err = Closed(c.URL, 2, time.Minute)
		require.Error(t, err)
	}
}

// TestNobodyListens: there is no connection, and no request waits for one.
func TestNobodyListens(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := shortly("http://"+ln.Addr().String()+"/", 20)
	require.NoError(t, ln.Close())
	answers, err := Run(c)
	require.NoError(t, err)
	require.Equal(t, map[int16]int{NoConn: arrivals(c)}, statuses(answers))
	_, err = Closed(c.URL, 2, time.Minute)
	require.Error(t, err)
}

// TestConnectionClose: an answer with it counts, and the next request takes
// another connection.
func TestConnectionClose(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		done(w, r)
	})
	c := shortly(url, 100)
	answers, err := Run(c)
	require.NoError(t, err)
	require.Equal(t, map[int16]int{200: arrivals(c)}, statuses(answers))
	answers, err = Closed(url, 2, 100*time.Millisecond)
	require.NoError(t, err)
	require.Greater(t, statuses(answers)[200], 2)
	require.Len(t, statuses(answers), 1)
}

// TestUnasked: a second, unrequested answer ends the connection. Were
// it taken for the answer to the next request, every other would be wrong.
func TestUnasked(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	c := shortly(script(t, answer+strings.Replace(answer, "200", "500", 1), false), 20)
	c.Phases[0].Duration *= 2
	answers, err := Run(c)
	require.NoError(t, err)
	got := statuses(answers)
	require.Zero(t, got[TimedOut])
	require.Positive(t, got[200])
}

// TestIdleConnectionEnds: requests do not go out on a connection that has ended
// since its last answer.
func TestIdleConnectionEnds(t *testing.T) {
	c := &conn{}
	a := &Answer{}
	require.True(t, c.take(a))
	require.Same(t, a, c.answer.Swap(nil))
	c.hangUp()
	require.False(t, c.take(a))
	require.Nil(t, c.answer.Load())
}

// TestTakeAgainstEnd: a request that is put on a connection while that ends is
// either refused or found by the reader, never lost.
func TestTakeAgainstEnd(t *testing.T) {
	for range 2000 {
		c, a := &conn{}, &Answer{}
		var found *Answer
		var taken bool
		var both sync.WaitGroup
		both.Go(func() { taken = c.take(a) })
		both.Go(func() {
			c.hangUp()
			found = c.answer.Swap(nil)
		})
		both.Wait()
		require.Equal(t, taken, found == a)
		require.Nil(t, c.answer.Load())
	}
}

// TestClosed counts every answer, and has as many requests on their way as
// asked for.
func TestClosed(t *testing.T) {
	var served, now, most atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if served.Add(1)%3 == 0 {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		done(w, r)
	})
	answers, err := Closed(url, 4, 200*time.Millisecond)
	require.NoError(t, err)
	require.EqualValues(t, served.Load(), len(answers))
	require.EqualValues(t, served.Load()/3, statuses(answers)[503])
	require.LessOrEqual(t, most.Load(), int64(4))
	require.Positive(t, statuses(answers)[200])
}

// TestSources: connections to this machine come from several addresses, or Linux would have
// ports for half of them only.
func TestSources(t *testing.T) {
	var from sync.Map
	s := httptest.NewUnstartedServer(http.HandlerFunc(done))
	s.Config.ConnState = func(c net.Conn, _ http.ConnState) {
		from.Store(c.RemoteAddr().(*net.TCPAddr).IP.String(), true)
	}
	s.Start()
	t.Cleanup(s.Close)
	c := shortly(s.URL, 50)
	c.Open = sources
	answers, err := Run(c)
	require.NoError(t, err)
	require.Equal(t, map[int16]int{200: arrivals(c)}, statuses(answers))
	n := 0
	from.Range(func(any, any) bool { n++; return true })
	want := 1
	if runtime.GOOS == "linux" {
		want = sources
	}
	require.Equal(t, want, n)
}
