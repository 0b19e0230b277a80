package inflight

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// This file measures how long a request waits for its client: in reads of the body and writes
// of the response. While it waits it holds no slot of an adaptive limit (AwaitClient in
// adaptive/inflight.go), and its duration does not count.

// pace records the waits of a request for its client or a stream.
type pace struct {
	began   time.Duration // when the handler was called
	flushed atomic.Int64  // when the response was flushed first; 0: never
	sending atomic.Int64  // how long writing the response took
	lost    atomic.Bool   // the response could not be written
	body    pacedBody
}

var epoch = time.Now()

// now returns the time since epoch, on the monotonic clock.
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

// serverBuffer is the size of net/http's smallest buffer of a response. A write
// within it does not wait for the client.
const serverBuffer = 2048

// await begins a write of n bytes of the response, and goOn ends it. It reads the clock only for a write that
// fills the buffer, because others do not wait.
func (w *writer) await(n int) (from time.Duration) {
	if w.buffered += n; w.buffered > serverBuffer {
		w.large, w.buffered = true, (w.buffered-1)%serverBuffer+1
		from = now()
	}
	if w.large {
		w.lease.await()
	}
	return from
}

func (w *writer) goOn(from time.Duration) {
	if from != 0 {
		w.sending.Add(int64(now() - from))
	}
	if w.large {
		w.lease.goOn()
	}
}

// await begins an operation that may wait for the client, and goOn ends it.
func (l *lease) await() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits++; l.waits == 1 && !l.ended {
		l.AwaitClient(true)
	}
}

func (l *lease) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits--; l.waits == 0 && !l.ended {
		l.AwaitClient(false)
	}
}

// streams marks the rest of the request as a wait for the client, which decides how long it lasts.
func (l *lease) streams() {
	l.mu.Lock()
	first := !l.streamed
	l.streamed = true
	l.mu.Unlock()
	if first {
		l.await()
	}
}

// source wraps r for a copy to the client, in which only reading from r is work. It
// returns a file unwrapped, so that the system sends it.
func (w *writer) source(r io.Reader) io.Reader {
	inner := r
	if limited, ok := r.(*io.LimitedReader); ok {
		inner = limited.R
	}
	if _, file := inner.(*os.File); file {
		return r
	}
	return workReader{r, w}
}

// workReader reads for a copy to the client.
type workReader struct {
	io.Reader
	w *writer
}

func (r workReader) Read(p []byte) (int, error) {
	from := now()
	r.w.lease.goOn()
	defer func() {
		r.w.lease.await()
		r.w.sending.Add(int64(from - now())) // not sending meanwhile
	}()
	return r.Reader.Read(p)
}
