package early_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/early"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/keyfunc"
)

// coin is a limiter that has room every other time, at random.
type coin struct{}

func (coin) Acquire(context.Context, string, int64) (algo.Lease, error) {
	return algo.NewLease(algo.Decision{Allowed: true, Limit: 1, Remaining: rand.Int64N(2)}, nil, algo.Handle{}), nil
}

// checked answers each request with its path and the sum of its body, and counts
// those that arrive otherwise than they were sent.
type checked struct{ served, broken atomic.Int64 }

func (h *checked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.served.Add(1)
	if r.Header.Get("Upgrade") != "" {
		h.echo(w)
		return
	}
	body, err := io.ReadAll(r.Body)
	sum := strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10)
	if err == nil && r.Header.Get("X-Sum") != r.URL.Path+" "+sum {
		h.broken.Add(1)
	}
	_, _ = io.WriteString(w, r.URL.Path+" "+sum)
}

// echo takes the connection over and sends back a line.
func (h *checked) echo(w http.ResponseWriter) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		h.broken.Add(1)
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
	line, _ := rw.ReadString('\n')
	_, _ = io.WriteString(c, line)
}

// request is one request of a wild client.
type request struct {
	bytes  []byte
	path   string
	body   []byte
	simple bool // may be denied at the socket, if it arrives alone
}

// newRequest draws a request. Bodies may look like requests.
func newRequest(rnd *rand.Rand) request {
	r := request{path: fmt.Sprintf("/%d", rnd.Uint32())}
	if rnd.IntN(8) == 0 {
		r.path = "/health" + r.path
	}
	if rnd.IntN(3) == 0 {
		r.body = bytes.Repeat([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), rnd.IntN(3)*rnd.IntN(120))
	}
	var b bytes.Buffer
	method, framing := "GET", ""
	switch kind := rnd.IntN(4); {
	case len(r.body) > 0 && kind == 0:
		method, framing = "POST", "Transfer-Encoding: chunked\r\n"
	case len(r.body) > 0 || kind == 1:
		method, framing = "POST", fmt.Sprintf("Content-Length: %d\r\n", len(r.body))
	default:
		r.simple = len(r.path) < 8 || r.path[:8] != "/health/"
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: a\r\nX-Sum: %s %d\r\n%s\r\n", method, r.path, r.path, crc32.ChecksumIEEE(r.body), framing)
	if framing == "Transfer-Encoding: chunked\r\n" {
		half := len(r.body) / 2
		fmt.Fprintf(&b, "%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", half, r.body[:half], len(r.body)-half, r.body[half:])
	} else {
		b.Write(r.body)
	}
	r.bytes = b.Bytes()
	return r
}

// wild is one connection of a client that does all that HTTP allows.
type wild struct {
	t   *testing.T
	rnd *rand.Rand
	c   net.Conn
	in  *bufio.Reader
}

// write sends b, at times in parts.
func (c *wild) write(b []byte) {
	for len(b) > 0 {
		n := len(b)
		if c.rnd.IntN(3) == 0 {
			n = 1 + c.rnd.IntN(n)
		}
		if _, err := c.c.Write(b[:n]); err != nil {
			return // the answers show it
		}
		if b = b[n:]; len(b) > 0 && c.rnd.IntN(4) == 0 {
			time.Sleep(time.Duration(c.rnd.IntN(300)) * time.Microsecond)
		}
	}
}

// batch sends requests at once, and checks the answers. It reports whether the
// connection goes on.
func (c *wild) batch(n int) bool {
	all := make([]request, n)
	var sent []byte
	for i := range all {
		all[i] = newRequest(c.rnd)
		sent = append(sent, all[i].bytes...)
	}
	if c.rnd.IntN(30) == 0 { // and hangs up somewhere
		c.write(sent[:c.rnd.IntN(len(sent)+1)])
		return false
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write(sent)
	}()
	for i := range all {
		if !c.check(&all[i]) {
			_ = c.c.Close()
			break
		}
	}
	<-written
	return !c.t.Failed()
}

// check reads an answer: the handler's, or a denial of a request that may be
// denied. Part of a batch may arrive alone.
func (c *wild) check(r *request) bool {
	resp, err := http.ReadResponse(c.in, nil)
	if !assert.NoError(c.t, err, "%.100q", r.bytes) {
		return false
	}
	body, err := io.ReadAll(resp.Body)
	ok := assert.NoError(c.t, err)
	if resp.StatusCode == http.StatusServiceUnavailable {
		return ok && assert.True(c.t, r.simple, "%.100q", r.bytes) && assert.Equal(c.t, "1", resp.Header.Get("Retry-After"))
	}
	want := fmt.Sprintf("%s %d", r.path, crc32.ChecksumIEEE(r.body))
	return ok && assert.Equal(c.t, http.StatusOK, resp.StatusCode) && assert.Equal(c.t, want, string(body))
}

// upgrade leaves HTTP.
func (c *wild) upgrade() {
	c.write([]byte("GET /up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"))
	resp, err := http.ReadResponse(c.in, nil)
	if assert.NoError(c.t, err) && assert.Equal(c.t, http.StatusSwitchingProtocols, resp.StatusCode) {
		c.write([]byte("GET / HTTP/1.1\r\n"))
		line, _ := c.in.ReadString('\n')
		assert.Equal(c.t, "GET / HTTP/1.1\r\n", line)
	}
}

// run has one connection, and returns the number of its requests.
func (c *wild) run() (requests int64) {
	defer c.c.Close()
	for range 1 + c.rnd.IntN(60) {
		n := 1
		if c.rnd.IntN(4) == 0 {
			n += c.rnd.IntN(5)
		}
		requests += int64(n)
		if !c.batch(n) {
			return requests
		}
		if c.rnd.IntN(60) == 0 {
			c.upgrade()
			return requests + 1
		}
	}
	return requests
}

// TestListenerBreaksNothing: under random overload, wild clients (pipelining,
// bodies, partial writes, upgrades, hang-ups) get the answer to each request or,
// where the request is whole and has no body, a denial.
func TestListenerBreaksNothing(t *testing.T) {
	h := &checked{}
	ln, addr := serveEarly(t, &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}, coin{}, "/health/")
	var requests atomic.Int64
	most := int64(cases.Count(20_000, 1_000_000))
	var all sync.WaitGroup
	for seed := range uint64(8) {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 1))
			for requests.Load() < most && !t.Failed() {
				c, err := net.Dial("tcp", addr)
				if !assert.NoError(t, err) {
					return
				}
				client := &wild{t: t, rnd: rand.New(rand.NewPCG(rnd.Uint64(), 2)), c: c, in: bufio.NewReader(c)}
				requests.Add(client.run())
			}
		})
	}
	all.Wait()
	require.Zero(t, h.broken.Load())
	require.Greater(t, h.served.Load(), most/4)
	require.Greater(t, int64(ln.Denied()), most/100)
	t.Logf("%d requests, %d denied at the socket", requests.Load(), ln.Denied())
}

// TestListenerLeavesTheTLSPortAlone: plain HTTP on the port of a TLS server is rejected as without
// a Listener, not answered in plain text.
func TestListenerLeavesTheTLSPortAlone(t *testing.T) {
	full := new(gauge)
	full.full.Store(true)
	srv := httptest.NewUnstartedServer(httpmw.Limit(full, keyfunc.Global())(ok))
	listener := early.NewListener(srv.Config, srv.Listener, full)
	srv.Listener = listener
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	status, body := exchange(t, conn, bufio.NewReader(conn), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	require.Equal(t, http.StatusBadRequest, status, body)
	require.Zero(t, listener.Denied())
	resp, err := srv.Client().Get(srv.URL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, "the peek alone denies")
}
