package httpmw

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// patient is a context with the deadline of a client. It needs no timer: a limiter
// only compares the deadline with its expected wait.
type patient struct {
	context.Context
	deadline time.Time
}

func (p patient) Deadline() (time.Time, bool) {
	if own, ok := p.Context.Deadline(); ok && own.Before(p.deadline) {
		return own, true
	}
	return p.deadline, true
}

func (p patient) Err() error {
	if err := p.Context.Err(); err != nil || time.Until(p.deadline) > 0 {
		return err
	}
	return context.DeadlineExceeded
}

// withPatience is ctx for a middleware that wraps the writer: if the client has said how long
// it waits, with that deadline. (A limit over time expects nothing.)
func (m *middleware) withPatience(ctx context.Context, h http.Header) context.Context {
	if left, ok := m.patience(h); ok {
		return patient{ctx, time.Now().Add(left)}
	}
	return ctx
}

func (m *middleware) patience(h http.Header) (time.Duration, bool) {
	if m.timeout != "" {
		if lines := h[m.timeout]; len(lines) > 0 {
			if ms, err := strconv.ParseUint(lines[0], 10, 32); err == nil {
				return time.Duration(ms) * time.Millisecond, true
			}
		}
	}
	return chosenTimeout(h)
}

// reserveOf is the share of the limit that r must leave to others.
func (m *middleware) reserveOf(r *http.Request) float64 {
	if m.reserve > 0 && (grpcRetry(r.Header["Grpc-Previous-Rpc-Attempts"]) || envoyRetry(r.Header["X-Envoy-Attempt-Count"])) {
		return m.reserve
	}
	return 0
}

// grpcRetry reports whether a call is a retry: clients add the field to retries only.
func grpcRetry(lines []string) bool { return len(lines) > 0 && lines[0] != "0" }

// envoyRetry reports whether the count of attempts is above 1. A count that is too large for a
// number becomes the largest, and what is no number 0.
func envoyRetry(lines []string) bool {
	if len(lines) == 0 {
		return false
	}
	n, _ := strconv.ParseUint(lines[0], 10, 64)
	return n > 1
}
