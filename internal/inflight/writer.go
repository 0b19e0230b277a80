package inflight

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"time"
)

// writer wraps the server's response writer when the status matters or a slot is
// held. It has the optional interfaces of one of the sets below; deadlines
// and full duplex are reached through Unwrap, as http.ResponseController does.
type writer struct {
	http.ResponseWriter
	pace
	lease    *lease
	r        *http.Request
	status   int  // 0: not written yet
	late     bool // the client had gone, or its own time limit had passed, before
	buffered int  // bytes that the server may keep in its buffer, at most
	large    bool // the response has exceeded it
	notBegun bool // a limit further in has refused the request
}

// refused is called by a limit further in.
func (w *writer) refused() { w.notBegun = true }

// watch wraps w.
func watch(w http.ResponseWriter, r *http.Request, lease *lease) (http.ResponseWriter, *writer) {
	watched := &writer{ResponseWriter: w, r: r, lease: lease, pace: pace{began: now()}}
	return watched.withInterfaces(), watched
}

// withInterfaces returns w with the optional interfaces of the writer beneath. A type has
// its methods or has not, so each set needs a type. There is one for each writer of
// net/http and of common middlewares around it, and for each combination of Flusher and
// Hijacker: neither is ever lost or made up. With unusual combinations, handlers lose
// ReaderFrom, Pusher or CloseNotifier.
func (w *writer) withInterfaces() http.ResponseWriter {
	_, flush := w.ResponseWriter.(http.Flusher)
	_, hijack := w.ResponseWriter.(http.Hijacker)
	_, readFrom := w.ResponseWriter.(io.ReaderFrom)
	_, push := w.ResponseWriter.(http.Pusher)
	_, notify := w.ResponseWriter.(http.CloseNotifier) // handlers still use it
	f, h, r, p, c := flusher{w}, hijacker{w}, readerFrom{w}, pusher{w}, notifier{w}
	if flush && hijack {
		return w.withFlushAndHijack(f, h)
	}
	switch {
	case flush && push && notify: // HTTP/2
		return struct {
			*writer
			flusher
			pusher
			notifier
		}{w, f, p, c}
	case flush && push: // chi over HTTP/2
		return struct {
			*writer
			flusher
			pusher
		}{w, f, p}
	case flush && readFrom:
		return struct {
			*writer
			flusher
			readerFrom
		}{w, f, r}
	case flush:
		return struct {
			*writer
			flusher
		}{w, f}
	case hijack:
		return struct {
			*writer
			hijacker
		}{w, h}
	case push: // http.TimeoutHandler
		return struct {
			*writer
			pusher
		}{w, p}
	}
	return w
}

func (w *writer) withFlushAndHijack(f flusher, h hijacker) http.ResponseWriter {
	_, readFrom := w.ResponseWriter.(io.ReaderFrom)
	_, push := w.ResponseWriter.(http.Pusher)
	_, notify := w.ResponseWriter.(http.CloseNotifier)
	r, p, c := readerFrom{w}, pusher{w}, notifier{w}
	switch {
	case readFrom && notify: // HTTP/1.1
		return struct {
			*writer
			flusher
			hijacker
			readerFrom
			notifier
		}{w, f, h, r, c}
	case readFrom: // chi
		return struct {
			*writer
			flusher
			hijacker
			readerFrom
		}{w, f, h, r}
	case notify: // gin, negroni
		return struct {
			*writer
			flusher
			hijacker
			notifier
		}{w, f, h, c}
	case push: // middlewares that compress
		return struct {
			*writer
			flusher
			hijacker
			pusher
		}{w, f, h, p}
	}
	return struct {
		*writer
		flusher
		hijacker
	}{w, f, h}
}

// commit notes the status of the response: the first one, but not an
// informational one, which others follow. 101 ends the matter.
func (w *writer) commit(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status, w.late = status, w.r.Context().Err() != nil || w.expired()
		if status == http.StatusRequestEntityTooLarge && w.body.http1 && !w.body.ended.Load() {
			// As http.MaxBytesReader has it, which looks for a type of net/http behind w:
			// the answer does not wait for the rest of the body.
			w.Header()["Connection"] = []string{"close"}
		}
		if streamType(contentType(w.Header())) {
			w.lease.streams()
		}
	}
}

func (w *writer) WriteHeader(status int) {
	w.commit(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(b []byte) (int, error) {
	w.commit(http.StatusOK)
	defer w.goOn(w.await(len(b)))
	n, err := w.ResponseWriter.Write(b)
	if err != nil {
		w.check(err)
	}
	return n, err
}

// check notes an error of the connection. The others are mistakes of the
// handler, or of a middleware around this one.
func (w *writer) check(err error) {
	for _, other := range []error{http.ErrBodyNotAllowed, http.ErrContentLength, http.ErrHijacked,
		http.ErrNotSupported, http.ErrHandlerTimeout} {
		if errors.Is(err, other) {
			return
		}
	}
	w.lost.Store(true)
}

// WriteString exists whether the writer beneath has it or not: it does the
// same as Write.
func (w *writer) WriteString(s string) (int, error) {
	w.commit(http.StatusOK)
	defer w.goOn(w.await(len(s)))
	n, err := io.WriteString(w.ResponseWriter, s)
	if err != nil {
		w.check(err)
	}
	return n, err
}

// Unwrap returns the writer beneath. If that is no Hijacker, but one further
// down is, Hijack still goes through w, because the slot must follow the
// connection.
func (w *writer) Unwrap() http.ResponseWriter {
	if _, ok := w.ResponseWriter.(http.Hijacker); !ok && canHijack(w.ResponseWriter) {
		return beneath{w.ResponseWriter, hijacker{w}}
	}
	return w.ResponseWriter
}

// beneath is the writer beneath with the Hijack of a writer.
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
	f.w.flushed.CompareAndSwap(0, int64(now()))
	if len(f.w.Header()["Content-Length"]) == 0 {
		f.w.lease.streams() // the client gets it in parts, as they are made
	}
	f.w.lease.await()
	defer f.w.lease.goOn()
	err := http.NewResponseController(f.w.ResponseWriter).Flush()
	if err != nil {
		f.w.check(err)
	}
	return err
}

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.w.ResponseWriter).Hijack()
	if err != nil {
		return conn, rw, err
	}
	return h.w.lease.follow(conn, rw), rw, nil
}

func (f readerFrom) ReadFrom(r io.Reader) (int64, error) {
	f.w.commit(http.StatusOK)
	defer f.w.goOn(f.w.await(serverBuffer + 1))
	return f.w.ResponseWriter.(io.ReaderFrom).ReadFrom(f.w.source(r))
}

func (p pusher) Push(target string, opts *http.PushOptions) error {
	return p.w.ResponseWriter.(http.Pusher).Push(target, opts)
}

// CloseNotify serves handlers that still use it, gin's for one. A writer of net/http has it, and
// the methods of http.ResponseController, which some middlewares look for.
func (n notifier) CloseNotify() <-chan bool {
	return n.w.ResponseWriter.(http.CloseNotifier).CloseNotify() // see above
}

func (n notifier) SetReadDeadline(t time.Time) error  { return n.controller().SetReadDeadline(t) }
func (n notifier) SetWriteDeadline(t time.Time) error { return n.controller().SetWriteDeadline(t) }
func (n notifier) EnableFullDuplex() error            { return n.controller().EnableFullDuplex() }

func (n notifier) controller() *http.ResponseController {
	return http.NewResponseController(n.w.ResponseWriter)
}
