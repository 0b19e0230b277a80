package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/programs/gateway/config"
)

// errBodyTimeout reports that the client stopped sending its body.
var errBodyTimeout = errors.New("no bytes of the request body arrived in time")

// limitBody ends requests whose body makes no progress for a time, or takes too long as a whole.
func (g *Gateway) limitBody(t config.Timeouts, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody && !isGRPC(r) {
			body := &timedBody{ReadCloser: r.Body, conn: http.NewResponseController(w), timeout: t.Body, end: time.Now().Add(t.WholeBody)}
			g.bodies.Add(1)
			defer g.bodies.Add(-1)
			r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
			r.Body = body
		}
		next.ServeHTTP(w, r)
	})
}

// isGRPC reports whether r is a call of gRPC: a stream may stay quiet as long as
// it likes, and has pings and deadlines of its own.
func isGRPC(r *http.Request) bool {
	return r.ProtoMajor == 2 && format(r) == "application/grpc"
}

// format is the content type of r without its codec and its parameters, in lower case: calls of
// gRPC may have any codec, "application/grpc+proto".
func format(r *http.Request) string {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	kind, _, _ = strings.Cut(kind, "+")
	return strings.ToLower(strings.TrimSpace(kind))
}

// bodyKey is the context key of the *timedBody: ReverseProxy wraps the body.
type bodyKey struct{}

// timedBody gives each Read its own deadline.
type timedBody struct {
	io.ReadCloser
	conn    *http.ResponseController
	timeout time.Duration
	end     time.Time   // of the whole body
	expired atomic.Bool // it stopped coming
	broken  atomic.Bool // it is malformed, or ends too early
	ended   bool
}

// bodyOf is the body of r, nil if it has none that is limited. When it expires or breaks the
// server cancels the context of r, as it does when the client is gone.
func bodyOf(r *http.Request) *timedBody {
	b, _ := r.Context().Value(bodyKey{}).(*timedBody)
	return b
}

// The client of the upstream reads once more at the end, and by then the server may have
// closed the body, because the response has begun: an error there would cut that off.
func (b *timedBody) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	deadline := time.Now().Add(b.timeout)
	if b.end.Before(deadline) {
		deadline = b.end
	}
	if err := b.conn.SetReadDeadline(deadline); err != nil {
		return b.ReadCloser.Read(p)
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.expired.Store(true)
		return n, errBodyTimeout
	}
	if err != nil && err != io.EOF && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.broken.Store(true)
	}
	if b.ended = err == io.EOF; b.ended {
		return n, err // the server has lifted the deadline, and may have set its own
	}
	// The server goes on reading, to notice that the client is gone.
	_ = b.conn.SetReadDeadline(time.Time{})
	return n, err
}
