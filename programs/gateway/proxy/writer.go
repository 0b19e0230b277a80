package proxy

import "net/http"

// writer is a response writer with something around it. Whatever it does not have is found by
// http.ResponseController beneath it.
type writer struct {
	http.ResponseWriter
	// head is called with a status before its header is written. If it returns false, none is.
	head  func(status int) bool
	begun bool // the header of the answer is written
}

// Unwrap returns the writer beneath.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader writes a header.
func (w *writer) WriteHeader(status int) {
	if w.begun {
		w.ResponseWriter.WriteHeader(status) // which complains
		return
	}
	w.begun = status >= http.StatusOK || status == http.StatusSwitchingProtocols
	if w.head(status) {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write writes a part of the body, and before the first one the header.
func (w *writer) Write(b []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(b)
}

// FlushError sends what is written.
func (w *writer) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *writer) begin() {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
}
