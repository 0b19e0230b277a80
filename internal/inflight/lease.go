package inflight

import (
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/algo"
)

// lease is the lease of a request, which outlives the handler if the connection is
// hijacked. It is released once the handler has ended and the connection is
// closed, by the later of the two, so that neither can release it while the
// other still uses it.
//
// It reports when the request waits for its client, so that adaptive limits do
// not count it meanwhile. Reads and writes may overlap, and a read may outlast
// the handler.
type lease struct {
	algo.Lease
	users    atomic.Int32 // the handler, and the connection if it is hijacked
	hijacked atomic.Bool

	mu       sync.Mutex // guards the fields below, and the end of the lease
	waits    int        // operations that may wait for the client
	streamed bool       // one of them is the rest of the request
	ended    bool
}

// drop ends one use of the lease.
func (l *lease) drop(o algo.Outcome) {
	if l.users.Add(-1) > 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.Release(o)
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

// streams notes that the rest of the request lasts as long as the client likes.
func (l *lease) streams() {
	l.mu.Lock()
	first := !l.streamed
	l.streamed = true
	l.mu.Unlock()
	if first {
		l.await()
	}
}

// source is r for a copy to the client, in which only reading from r is work. A
// file stays a file, which the system sends by itself.
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
