package httpmw

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// maxRest is how much of a body net/http reads to keep the connection.
	maxRest = 256 << 10
	// restTime is how long the rest of a body is waited for: limits further out hold a
	// slot meanwhile.
	restTime = 10 * time.Millisecond
	// lingerTime is how long net/http reads the rest after the handler, so that the client
	// finds the response before its connection is closed (RFC 9112, section 9.6).
	lingerTime = 5 * time.Second
)

// answerAtOnce keeps net/http from reading the rest of the body before it sends the
// response, for as long as the client takes to send it.
func answerAtOnce(w http.ResponseWriter) bool {
	return http.NewResponseController(w).EnableFullDuplex() == nil
}

// endBody readies a request for a response that does not wait for its client: the body is
// read if it is there, as it mostly is. If it is not, the response closes the connection.
func endBody(ahead *readAhead, w http.ResponseWriter, r *http.Request) {
	switch {
	case r.ProtoMajor != 1, r.ContentLength == 0, r.Body == nil:
		return // there is no body, or a handler around this one has taken it
	case r.ProtoMinor > 0 && r.Header.Get("Expect") != "":
		// net/http waits for the body after the response, and closes the connection.
		if !ahead.ended() {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingerTime))
		}
		return
	}
	if !readRest(w, r) && answerAtOnce(w) {
		closeAfterwards(w)
	}
}

// readRest reads the rest of the body, and reports whether all of it was there. If not, the
// rest is for net/http, which reads it after the handler.
func readRest(w http.ResponseWriter, r *http.Request) bool {
	c, until := http.NewResponseController(w), time.Now().Add(restTime)
	if r.ContentLength > maxRest || c.SetReadDeadline(until) != nil {
		return false
	}
	if _, err := io.CopyN(io.Discard, r.Body, maxRest+1); !errors.Is(err, io.EOF) {
		_ = c.SetReadDeadline(time.Now().Add(lingerTime)) // a moment ago it was no error
		return false
	}
	// Once the body is read net/http watches the connection, for which the time must not end.
	return c.SetReadDeadline(time.Time{}) == nil && time.Now().Before(until)
}

// deny readies a request for a handler that answers its denial. The response does not wait
// for the client, although the handler gets the body: the available part is read ahead.
func (b *readAhead) deny(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request) {
	if b == nil || r.Header.Get("Expect") != "" {
		return b.end(w, r)
	}
	b.await()
	w, r = b.end(w, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		w = b.detach(w)
	}
	return w, r
}

// await reads ahead as long as the rest of a body is waited for.
func (b *readAhead) await() {
	b.once.Do(func() {})
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.run()
	}()
	select {
	case <-done:
	case <-time.After(restTime):
	}
}

// detach makes the response independent of the rest of the body. The writer that it returns
// notices that the connection is hijacked. b.mu is locked.
func (b *readAhead) detach(w http.ResponseWriter) http.ResponseWriter {
	if b.detached != nil || !answerAtOnce(w) {
		return w
	}
	b.detached = &trackedLease{ahead: b} // of nothing
	b.detached.users.Store(1)
	w, _ = watch(w, b.detached)
	return w
}

// finish is called when the handler has returned or panics. In full duplex net/http reads
// the rest of the body after the handler, and at its end begins to watch the connection:
// beside the next request on it, which it then breaks off. So a connection serves the next
// request only if the body is known to be read, and is closed at once otherwise.
func (b *readAhead) finish(w http.ResponseWriter, r *http.Request) {
	if b == nil {
		return
	}
	b.stop()
	defer b.mu.Unlock()
	if b.detached == nil || b.detached.hijacked.Load() || b.taken == r.ContentLength {
		return
	}
	closeAfterwards(w)
	if http.NewResponseController(w).SetReadDeadline(time.Now()) == nil {
		b.wait()
	}
}

// wait waits for a read that has been interrupted. b.mu is locked.
func (b *readAhead) wait() {
	for b.reading {
		b.more.Wait()
	}
}

// closeAfterwards makes net/http close the connection half a second after the response, and
// say so unless the header is sent already, as http.MaxBytesReader does beyond its limit.
func closeAfterwards(w http.ResponseWriter) {
	for {
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = inner.Unwrap()
	}
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}
