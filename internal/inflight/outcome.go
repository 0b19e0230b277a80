package inflight

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/sluice-go/sluice/algo"
)

// OfStatus returns the outcome for an HTTP status.
func OfStatus(status int) algo.Outcome {
	switch {
	case status == http.StatusNotImplemented: // as UNIMPLEMENTED
		return algo.Failed | algo.Untimed
	case status >= http.StatusInternalServerError:
		return algo.Failed
	case status >= http.StatusBadRequest:
		return algo.Failed | algo.Untimed // the client's error, which is quick to answer
	}
	return algo.Succeeded
}

// OfCode returns the outcome for a gRPC code.
func OfCode(code uint32) algo.Outcome {
	switch code {
	case 0:
		return algo.Succeeded
	case 2, 4, 13, 14, 15: // UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE, DATA_LOSS
		return algo.Failed
	}
	return algo.Failed | algo.Untimed // the client's error, or its quota is spent
}

// outcome returns the outcome for the limiter: the result by the status, untimed if the client
// or a stream determined the duration of the request. A client that has gone gets no refund for
// an outcome that it can cause by leaving.
func (f *Flight) outcome() algo.Outcome {
	gone := errors.Is(f.r.Context().Err(), context.Canceled) || f.w != nil && f.w.clientGone()
	outcome, gaveUp := f.result(gone)
	gone = gone || f.w != nil && f.w.expired()
	switch {
	case f.lease.hijacked.Load():
		return algo.Succeeded | algo.Untimed
	case f.w != nil && f.w.notBegun:
		return algo.Canceled
	case f.refundIf != nil && (!gone || !gaveUp && outcome != algo.Failed) && f.refundIf(f.status()):
		return algo.Canceled
	}
	if gone && f.w != nil && f.w.late {
		outcome = algo.Failed // nobody gets the answer
	}
	if gone || f.r.Method == http.MethodConnect || f.w != nil && f.w.streamed() {
		outcome |= algo.Untimed
	}
	return outcome
}

// result returns the outcome by the answer; gaveUp reports an answer that says that the client
// gave up.
func (f *Flight) result(gone bool) (o algo.Outcome, gaveUp bool) {
	status := f.status()
	o = OfStatus(status)
	switch {
	case !f.returned:
		return algo.Failed, false
	case o != algo.Succeeded || f.w == nil:
		return o, status == 499 // of nginx
	case gone && f.w.status == 0:
		return algo.Failed, false
	case isGRPC(contentType(f.w.Header())):
		code := codeIn(f.w.Header())
		return OfCode(code), code == canceled
	}
	return o, false
}

const canceled = 1 // CANCELED of gRPC

// status returns the status for the client: 500 if the handler did not return and
// has not written one.
func (f *Flight) status() int {
	switch {
	case f.w != nil && f.w.status != 0:
		return f.w.status
	case !f.returned:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// streamed reports whether the response lasts as long as the client or its data lasts.
func (w *writer) streamed() bool {
	if w.status < http.StatusBadRequest && streamType(contentType(w.Header())) {
		return true
	}
	return w.paced()
}

// codeIn returns the gRPC code of a response with the status 200. Over
// net/http (grpc-go's ServeHTTP, a proxy) gRPC has its status in a trailer.
func codeIn(h http.Header) uint32 {
	code := h.Get("Grpc-Status")
	if lines := h[http.TrailerPrefix+"Grpc-Status"]; code == "" && len(lines) > 0 {
		code = lines[0]
	}
	if code == "" {
		return 0
	}
	n, err := strconv.ParseUint(code, 10, 32)
	if err != nil {
		return math.MaxUint32
	}
	return uint32(n)
}
