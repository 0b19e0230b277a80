package inflight

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/algo"
)

// OfStatus is what a status of HTTP says about the work.
func OfStatus(status int) algo.Outcome {
	switch {
	case status == http.StatusNotImplemented: // as UNIMPLEMENTED
		return algo.Failed | algo.Untimed
	case status >= http.StatusInternalServerError:
		return algo.Failed
	case status >= http.StatusBadRequest:
		return algo.Failed | algo.Untimed // the request was at fault, and answering it is quick
	}
	return algo.Succeeded
}

// OfCode is what a code of gRPC says about the work.
func OfCode(code uint32) algo.Outcome {
	switch code {
	case 0:
		return algo.Succeeded
	case 2, 4, 13, 14, 15: // UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE, DATA_LOSS
		return algo.Failed
	}
	return algo.Failed | algo.Untimed // the request was at fault, or its own quota is spent
}

// outcome is the outcome for the limiter: the result by the status, and timed only if
// neither the client nor a stream determined the duration of the request.
func (f *Flight) outcome() algo.Outcome {
	status := f.status()
	gone := errors.Is(f.r.Context().Err(), context.Canceled) || f.w != nil && f.w.clientGone()
	switch {
	case f.lease.hijacked.Load():
		return algo.Succeeded | algo.Untimed
	case f.w != nil && f.w.notBegun:
		return algo.Canceled
	case f.refundIf != nil && (!gone || f.returned && status < http.StatusInternalServerError) && f.refundIf(status):
		return algo.Canceled
	}
	outcome := OfStatus(status)
	switch {
	case !f.returned:
		outcome = algo.Failed
	case outcome == algo.Succeeded && gone && f.w != nil && f.w.status == 0:
		outcome = algo.Failed
	case outcome == algo.Succeeded && f.w != nil:
		outcome = f.w.outcome()
	}
	if gone || f.r.Method == http.MethodConnect || f.w != nil && f.expired() {
		outcome |= algo.Untimed
	}
	return outcome
}

// status is the status that the client sees, or would have seen: 500 if the
// handler did not come to an end before it wrote one.
func (f *Flight) status() int {
	switch {
	case f.w != nil && f.w.status != 0:
		return f.w.status
	case !f.returned:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// outcome is the outcome of a response with a status below 400.
func (w *writer) outcome() algo.Outcome {
	kind, outcome := contentType(w.Header()), algo.Succeeded
	if strings.HasPrefix(kind, "application/grpc") {
		outcome = codeIn(w.Header())
	}
	if streamType(kind) || w.paced() {
		outcome |= algo.Untimed // it lasts as long as the client or its data lasts
	}
	return outcome
}

// codeIn is the outcome of a response of gRPC with the status 200. Over
// net/http (grpc-go's ServeHTTP, a proxy) gRPC has its status in a trailer.
func codeIn(h http.Header) algo.Outcome {
	code := h.Get("Grpc-Status")
	if lines := h[http.TrailerPrefix+"Grpc-Status"]; code == "" && len(lines) > 0 {
		code = lines[0]
	}
	if code == "" {
		return algo.Succeeded
	}
	n, err := strconv.ParseUint(code, 10, 32)
	if err != nil {
		return algo.Failed | algo.Untimed
	}
	return OfCode(uint32(n))
}
