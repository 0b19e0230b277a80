package inflight

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// pace is how a request went on, as far as its client or a stream decided that.
type pace struct {
	began   time.Duration // when the handler was called
	flushed atomic.Int64  // when the response was flushed first; 0: never
	sending atomic.Int64  // how long writing the response took
	lost    atomic.Bool   // the response could not be written
	body    pacedBody
}

var epoch = time.Now()

// now is a monotonic instant.
func now() time.Duration { return time.Since(epoch) }

// clientGone reports whether the connection failed. When a connection of HTTP/2
// is closed, reads and writes may fail shortly before the context ends.
func (p *pace) clientGone() bool { return p.lost.Load() || p.body.failed.Load() }

// longWait and longPace are the times from which waiting for the client, or a stream, can be
// the main cause of a request's time. Shorter ones say little, but show the limiter that the
// limit is in use. An answer that the client takes in for half a second looks like overload.
const (
	longWait = 100 * time.Millisecond
	longPace = time.Second
)

// paced reports whether most of the time of the request was spent on a body
// that its client sent slowly, on a response that it read slowly, or after the response was
// flushed first.
func (p *pace) paced() bool {
	waited, flushed := time.Duration(p.body.waited.Load()+p.sending.Load()), time.Duration(p.flushed.Load())
	if waited < longWait && flushed == 0 {
		return false
	}
	end := now()
	long := func(d, least time.Duration) bool { return d >= least && d > (end-p.began)/2 }
	return long(waited, longWait) || flushed != 0 && long(end-flushed, longPace)
}

// pacedBody is the body of a request: whether it failed, and how long the
// handler waited for it.
type pacedBody struct {
	io.ReadCloser
	lease  *lease
	waited atomic.Int64
	closed atomic.Bool
	failed atomic.Bool
	ended  atomic.Bool
	http1  bool
}

func (b *pacedBody) Read(p []byte) (int, error) {
	b.lease.await()
	defer b.lease.goOn()
	from := now()
	n, err := b.ReadCloser.Read(p)
	b.waited.Add(int64(now() - from))
	if err == io.EOF {
		b.ended.Store(true)
	}
	if err != nil && !errors.Is(err, io.EOF) && !b.closed.Load() {
		b.failed.Store(true)
	}
	return n, err
}

func (b *pacedBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}
