package inflight

import (
	"context"
	"math"
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

// Patience is the context of the request, with the deadline of its client if that has said how
// long it waits.
func (f *Flight) Patience() context.Context {
	ctx := f.r.Context()
	if left, ok := chosenTimeout(f.r.Header); ok {
		return patient{ctx, time.Now().Add(left)}
	}
	return ctx
}

// expired reports whether the time that the client has allowed for the request
// is over.
func (w *writer) expired() bool {
	allowed, ok := chosenTimeout(w.r.Header)
	return ok && now()-w.began >= allowed
}

// chosenTimeout is the time limit in a request of gRPC, gRPC-Web or Connect, or
// of JSON for a gRPC gateway.
func chosenTimeout(h http.Header) (time.Duration, bool) {
	if lines := h["Grpc-Timeout"]; len(lines) > 0 {
		return grpcTimeout(lines[0])
	}
	if lines := h["Connect-Timeout-Ms"]; len(lines) > 0 && len(lines[0]) <= 10 {
		ms, err := strconv.ParseUint(lines[0], 10, 64)
		return time.Duration(ms) * time.Millisecond, err == nil
	}
	return 0, false
}

// grpcTimeout parses the field: at most eight digits and a unit.
func grpcTimeout(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	unit, ok := map[byte]time.Duration{
		'H': time.Hour, 'M': time.Minute, 'S': time.Second,
		'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
	}[s[len(s)-1]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if !ok || err != nil {
		return 0, false
	}
	if n > uint64(math.MaxInt64)/uint64(unit) {
		return math.MaxInt64, true
	}
	return time.Duration(n) * unit, true
}
