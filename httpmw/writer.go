package httpmw

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// writer is what the handler gets instead of the server's response writer when
// the status matters or a slot is held. It has the optional interfaces of the
// writer beneath and no others, see shapes; deadlines and full duplex are
// reached through Unwrap, as http.ResponseController does.
type writer struct {
	http.ResponseWriter
	held   *hold
	status int // 0: not written yet
}

// watch wraps w.
func watch(w http.ResponseWriter, held *hold) (http.ResponseWriter, *writer) {
	watched := &writer{ResponseWriter: w, held: held}
	return shapes[shapeOf(w)](watched), watched
}

// commit notes the status of the response: the first one, but not an
// informational one, which others follow. 101 ends the matter.
func (w *writer) commit(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
}

func (w *writer) WriteHeader(status int) {
	w.commit(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	w.commit(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// WriteString is there whether the writer beneath has it or not: it does what
// Write does.
func (w *writer) WriteString(s string) (int, error) {
	w.commit(http.StatusOK)
	return io.WriteString(w.ResponseWriter, s)
}

// Unwrap returns the writer beneath. If only one further down can be hijacked,
// it stands in between, because the slot must follow the connection.
func (w *writer) Unwrap() http.ResponseWriter {
	if _, ok := w.ResponseWriter.(http.Hijacker); !ok && canHijack(w.ResponseWriter) {
		return beneath{w.ResponseWriter, hijacker{w}}
	}
	return w.ResponseWriter
}

// beneath is a writer whose Hijack goes through ours.
type beneath struct {
	http.ResponseWriter
	hijacker
}

func (b beneath) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// canHijack reports whether w or a writer beneath it is a Hijacker.
func canHijack(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// The optional interfaces, each on its own.
type (
	flusher    struct{ w *writer }
	hijacker   struct{ w *writer }
	readerFrom struct{ w *writer }
	pusher     struct{ w *writer }
	notifier   struct{ w *writer }
)

func (f flusher) Flush() { _ = f.FlushError() }

func (f flusher) FlushError() error {
	f.w.commit(http.StatusOK)
	return http.NewResponseController(f.w.ResponseWriter).Flush()
}

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.w.ResponseWriter).Hijack()
	if err != nil {
		return conn, rw, err
	}
	return h.w.held.follow(conn), rw, nil
}

func (f readerFrom) ReadFrom(r io.Reader) (int64, error) {
	f.w.commit(http.StatusOK)
	return f.w.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
}

func (p pusher) Push(target string, opts *http.PushOptions) error {
	return p.w.ResponseWriter.(http.Pusher).Push(target, opts)
}

// CloseNotify serves handlers that still ask for it, gin's for one.
func (n notifier) CloseNotify() <-chan bool {
	return n.w.ResponseWriter.(http.CloseNotifier).CloseNotify() // see above
}
