package httpmw

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// outcomeOf returns the outcome for the limiter: the result by the status, and timed only if
// neither the client nor a stream determined the duration of the request.
func (h *handler) outcomeOf(lease *trackedLease, w *writer, r *http.Request, returned bool) algo.Outcome {
	status := statusOf(w, returned)
	gone := errors.Is(r.Context().Err(), context.Canceled) || w != nil && w.clientGone()
	switch {
	case lease.hijacked.Load():
		return algo.Succeeded | algo.Untimed
	case w != nil && w.notBegun:
		return algo.Canceled
	case h.Own.refundIf != nil && (!gone || returned && status < http.StatusInternalServerError) && h.Own.refundIf(status):
		return algo.Canceled
	}
	outcome := algo.Succeeded
	switch {
	case status >= http.StatusInternalServerError || !returned:
		outcome = algo.Failed
	case status >= http.StatusBadRequest, gone && w != nil && w.status == 0:
		outcome = algo.Failed | algo.Untimed
	case w != nil:
		outcome = w.outcome()
	}
	if gone || r.Method == http.MethodConnect || w != nil && w.expired(r) {
		outcome |= algo.Untimed
	}
	return outcome
}

// outcome is the outcome of a response with a status below 400.
func (w *writer) outcome() algo.Outcome {
	kind, outcome := contentType(w.Header()), algo.Succeeded
	if strings.HasPrefix(kind, "application/grpc") {
		outcome = grpcOutcome(w.Header())
	}
	if streamType(kind) || w.paced() {
		outcome |= algo.Untimed // it lasts as long as the client or its data lasts
	}
	return outcome
}

// contentType is the content type of a response, "" if it has none yet. The key
// is in canonical form, which saves http.Header.Get making it.
func contentType(h http.Header) string {
	if lines := h["Content-Type"]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// statusOf is the status that the client sees, or would have seen: 500 if the
// handler did not come to an end before it wrote one.
func statusOf(w *writer, returned bool) int {
	switch {
	case w != nil && w.status != 0:
		return w.status
	case !returned:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// pace is how a request went on, as far as its client or a stream decided that.
type pace struct {
	began   time.Duration // when the handler was called
	flushed atomic.Int64  // when the response was flushed first; 0: never
	sending atomic.Int64  // how long writing the response took
	lost    atomic.Bool   // the response could not be written
	body    pacedBody
}

var epoch = time.Now()

// now is a monotonic instant.
func now() time.Duration { return time.Since(epoch) }

// clientGone reports whether the connection failed. When a connection of HTTP/2
// is closed, reads and writes may fail shortly before the context ends.
func (p *pace) clientGone() bool { return p.lost.Load() || p.body.failed.Load() }

// longWait and longPace are the times from which waiting for the client, or a stream, can be
// the main cause of a request's time. Shorter ones say little, but show the limiter that the
// limit is in use. An answer that the client takes in for half a second looks like overload.
const (
	longWait = 100 * time.Millisecond
	longPace = time.Second
)

// paced reports whether most of the time of the request was spent on a body
// that its client sent slowly, on a response that it read slowly, or after the response was
// flushed first.
func (p *pace) paced() bool {
	waited, flushed := time.Duration(p.body.waited.Load()+p.sending.Load()), time.Duration(p.flushed.Load())
	if waited < longWait && flushed == 0 {
		return false
	}
	end := now()
	long := func(d, least time.Duration) bool { return d >= least && d > (end-p.began)/2 }
	return long(waited, longWait) || flushed != 0 && long(end-flushed, longPace)
}

// pacedBody is the body of a request: whether it failed, and how long the
// handler waited for it.
type pacedBody struct {
	io.ReadCloser
	lease  *trackedLease
	waited atomic.Int64
	closed atomic.Bool
	failed atomic.Bool
	ended  atomic.Bool
	http1  bool
}

func (b *pacedBody) Read(p []byte) (int, error) {
	b.lease.await()
	defer b.lease.goOn()
	from := now()
	n, err := b.ReadCloser.Read(p)
	b.waited.Add(int64(now() - from))
	if err == io.EOF {
		b.ended.Store(true)
	}
	if err != nil && !errors.Is(err, io.EOF) && !b.closed.Load() {
		b.failed.Store(true)
	}
	return n, err
}

func (b *pacedBody) Close() error {
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// watchBody returns r with a body that w sees. It is a copy: net/http looks at
// the type of the body to see how much of it is left.
func (w *writer) watchBody(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return r
	}
	w.body.ReadCloser, w.body.lease, w.body.http1 = r.Body, w.lease, r.ProtoMajor == 1
	shareTrailer(r)
	watched := new(http.Request)
	*watched = *r
	watched.Body = &w.body
	return watched
}

// shareTrailer makes the copies of r have the trailers that net/http adds to r, also those
// that the head of the request does not announce.
func shareTrailer(r *http.Request) {
	if r.Trailer == nil && r.ContentLength < 0 {
		r.Trailer = http.Header{}
	}
}

// expired reports whether the time that the client has allowed for the request
// is over.
func (w *writer) expired(r *http.Request) bool {
	allowed, ok := chosenTimeout(r.Header)
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

// streamType reports whether responses of a content type are streams.
func streamType(contentType string) bool {
	if contentType == "" {
		return false
	}
	kind := mediaType(contentType)
	switch kind {
	case eventStream, "multipart/x-mixed-replace", "application/vnd.amazon.eventstream", "application/json-seq":
		return true
	}
	if jsonLines(kind) {
		return true
	}
	return strings.HasSuffix(kind, "+json-seq") || strings.HasPrefix(kind, "application/connect+") ||
		strings.HasPrefix(kind, "audio/") || strings.HasPrefix(kind, "video/")
}

const eventStream = "text/event-stream"

// mediaType is a content type without its parameters, in lower case.
func mediaType(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// jsonLines reports whether a media type is of JSON values in lines.
func jsonLines(kind string) bool {
	switch kind {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines",
		"application/stream+json", "application/x-json-stream":
		return true
	}
	return false
}

// grpcOutcome is the outcome of a response of gRPC with the status 200. Over
// net/http (grpc-go's ServeHTTP, a proxy) gRPC has its status in a trailer.
func grpcOutcome(h http.Header) algo.Outcome {
	code := h.Get("Grpc-Status")
	if lines := h[http.TrailerPrefix+"Grpc-Status"]; code == "" && len(lines) > 0 {
		code = lines[0]
	}
	n, err := strconv.ParseUint(code, 10, 32)
	switch {
	case code == "" || code == "0":
		return algo.Succeeded
	case err == nil && admission.ServerFault(uint32(n)):
		return algo.Failed
	}
	return algo.Failed | algo.Untimed
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
