package httpmw

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// aheadAfter is how long a request waits before its body is read ahead.
	aheadAfter = 10 * time.Millisecond
	// expectAfter is aheadAfter for a client that waits for 100 Continue, which reading its body
	// sends. Clients wait for a second (curl, Go), and send the body then.
	expectAfter = time.Second
	// maxAhead is how much of a body is read ahead, in bytes.
	maxAhead = 64 << 10
)

// readAhead is the context and the body of a request of HTTP/1 that waits for its
// turn. net/http notices that a client has hung up only while it reads from the
// connection: where the handler reads the body, or once that is read. So the body
// is read ahead while a limiter waits, which it shows by calling Done, and the
// context ends with the connection. A body longer than maxAhead hides a hang-up
// behind its rest.
type readAhead struct {
	context.Context
	body     io.ReadCloser
	after    time.Duration
	once     sync.Once
	timer    *time.Timer
	over     atomic.Bool // the wait is over, or another goroutine reads
	mu       sync.Mutex  // guards the fields below
	more     sync.Cond   // of mu
	started  bool
	reading  bool
	closed   bool
	taken    int64         // bytes that were read
	buf      []byte        // bytes read and not yet delivered
	detached *trackedLease // if the response does not wait for the rest of the body
	err      error         // after buf
}

// newReadAhead is nil for a request whose context ends with its client anyway.
func newReadAhead(r *http.Request) *readAhead {
	if r.ProtoMajor != 1 || r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	b := &readAhead{Context: r.Context(), body: r.Body, after: aheadAfter}
	if len(r.Header["Expect"]) > 0 {
		b.after = expectAfter
	}
	b.more.L = &b.mu
	return b
}

// contextOf is the context in which r waits for its turn.
func (b *readAhead) contextOf(r *http.Request) context.Context {
	if b == nil {
		return r.Context()
	}
	return b
}

// Done is called by a limiter that waits. The timer saves those that wait for
// a round trip only from reading.
func (b *readAhead) Done() <-chan struct{} {
	b.once.Do(func() { b.timer = time.AfterFunc(b.after, b.run) })
	return b.Context.Done()
}

// run reads until the end of the body, or until it is stopped.
func (b *readAhead) run() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over.Load() || b.started {
		return
	}
	b.started, b.reading = true, true
	chunk := make([]byte, 4<<10)
	for b.err == nil && len(b.buf) < maxAhead && !b.over.Load() {
		b.mu.Unlock()
		n, err := b.body.Read(chunk)
		b.mu.Lock()
		b.buf, b.err, b.taken = append(b.buf, chunk[:n]...), err, b.taken+int64(n)
		b.more.Broadcast()
	}
	b.reading = false
	b.more.Broadcast()
}

// end ends the wait. It returns r, with the rest of a body that was read ahead.
func (b *readAhead) end(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request) {
	if b == nil {
		return w, r
	}
	b.stop()
	defer b.mu.Unlock()
	if !b.started {
		return w, r
	}
	if b.reading {
		// The response must not wait for the read, which may wait for the client.
		w = b.detach(w)
	}
	copied := new(http.Request)
	*copied = *r
	copied.Body = aheadBody{b}
	return w, copied
}

// ended reports whether the body was read ahead to its end.
func (b *readAhead) ended() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil
}

// stop lets no further read begin. b.mu is locked afterwards.
func (b *readAhead) stop() {
	b.once.Do(func() {})
	b.over.Store(true)
	b.mu.Lock()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// aheadBody is the body for the handler.
type aheadBody struct{ *readAhead }

func (b aheadBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	for len(b.buf) == 0 && b.reading && !b.closed {
		b.more.Wait()
	}
	switch {
	case b.closed:
		b.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	case len(b.buf) > 0:
		n := copy(p, b.buf)
		b.buf = b.buf[n:]
		b.mu.Unlock()
		return n, nil
	case b.err != nil:
		defer b.mu.Unlock()
		return 0, b.err
	}
	b.mu.Unlock()
	n, err := b.body.Read(p)
	b.mu.Lock()
	b.taken += int64(n)
	b.mu.Unlock()
	return n, err
}

// Close leaves a body that is being read to the server, which closes it too.
func (b aheadBody) Close() error {
	b.mu.Lock()
	b.closed = true
	b.more.Broadcast()
	reading := b.reading
	b.mu.Unlock()
	if reading {
		return nil
	}
	return b.body.Close()
}
