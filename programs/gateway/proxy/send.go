package proxy

import (
	"net/http"
	"time"
)

// limitSend cuts off clients that take nothing of their answer for longer than timeout:
// they would keep their places in flight.
func limitSend(timeout time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &sender{ResponseWriter: w, conn: http.NewResponseController(w), timeout: timeout}
		defer s.begin() // the rest of the buffers is sent after the handler
		next.ServeHTTP(s, r)
	})
}

// sender gives each send its own deadline.
type sender struct {
	http.ResponseWriter
	conn    *http.ResponseController
	timeout time.Duration
}

// Unwrap returns the writer beneath.
func (s *sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *sender) begin() { _ = s.conn.SetWriteDeadline(time.Now().Add(s.timeout)) } // or the connection was taken over

// A pause of the upstream is no fault of the client.
func (s *sender) end() { _ = s.conn.SetWriteDeadline(time.Time{}) }

// Write sends b.
func (s *sender) Write(b []byte) (int, error) {
	s.begin()
	defer s.end()
	return s.ResponseWriter.Write(b)
}

// FlushError sends what is written.
func (s *sender) FlushError() error {
	s.begin()
	defer s.end()
	return s.conn.Flush()
}
