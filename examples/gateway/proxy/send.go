package proxy

import (
	"net/http"
	"time"

	"github.com/felixge/httpsnoop"
)

// limitSend cuts off clients that take nothing of their answer for longer than timeout:
// they would keep their places in flight.
func limitSend(timeout time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := http.NewResponseController(w)
		within := func(send func()) {
			if conn.SetWriteDeadline(time.Now().Add(timeout)) != nil {
				send() // a connection that was taken over
				return
			}
			send()
			_ = conn.SetWriteDeadline(time.Time{}) // a pause of the upstream is no fault of the client
		}
		// The rest of the buffers is sent after the handler.
		defer func() { _ = conn.SetWriteDeadline(time.Now().Add(timeout)) }()
		next.ServeHTTP(httpsnoop.Wrap(w, httpsnoop.Hooks{
			Write: func(write httpsnoop.WriteFunc) httpsnoop.WriteFunc {
				return func(b []byte) (n int, err error) {
					within(func() { n, err = write(b) })
					return n, err
				}
			},
			Flush: func(flush httpsnoop.FlushFunc) httpsnoop.FlushFunc {
				return func() { within(flush) }
			},
		}), r)
	})
}
