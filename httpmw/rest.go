package httpmw

import (
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
)

// answerAtOnce keeps net/http from reading the rest of the body before it sends the
// response, for as long as the client takes to send it.
func answerAtOnce(w http.ResponseWriter) bool {
	return http.NewResponseController(w).EnableFullDuplex() == nil
}

// endBody readies a request for a response that does not wait for its client: the body is
// read if it is there, as it mostly is. If it is not, the response closes the connection.
func endBody(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || r.ContentLength == 0 || r.Header.Get("Expect") != "" {
		return // nobody sends a body
	}
	if !readRest(w, r) && answerAtOnce(w) {
		w.Header().Set("Connection", "close")
	}
}

// endResponse ends a response after [answerAtOnce], which may be sent already. In full
// duplex net/http reads the rest of the body after the handler, and at its end begins to
// watch the connection: beside the next request on it, which it then breaks off. So the
// rest is read here, and if it does not come the connection serves no other request.
func endResponse(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush() // best effort: the client may be gone
	if !readRest(w, r) {
		closeAfterwards(w)
	}
}

// readRest reads the rest of the body, and reports whether all of it was there.
func readRest(w http.ResponseWriter, r *http.Request) bool {
	c := http.NewResponseController(w)
	if r.ContentLength > maxRest || c.SetReadDeadline(time.Now().Add(restTime)) != nil {
		return false
	}
	_, err := io.CopyN(io.Discard, r.Body, maxRest+1)
	return err == io.EOF && c.SetReadDeadline(time.Time{}) == nil
}

// closeAfterwards makes net/http close the connection after the handler, when the header
// is sent already. That is what http.MaxBytesReader is documented to do beyond its limit.
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
