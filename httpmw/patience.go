package httpmw

import (
	"context"
	"net/http"
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
	if left, ok := chosenTimeout(h); ok {
		return patient{ctx, time.Now().Add(left)}
	}
	return ctx
}
