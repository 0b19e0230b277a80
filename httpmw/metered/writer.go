// Package metered charges HTTP responses by the chunk while they are written, and
// stops, holds or finishes those whose limit has no room:
//
//	m := meter.From(r.Context(), "tokens", 100)
//	out := metered.New(r.Context(), w, metered.Metering{Meter: m, Units: tokensIn})
//	defer out.Close()
//	_, err := io.Copy(out, upstream.Body)
//
// Do not use it for responses whose cost is known before they begin: give
// httpmw.Limit the cost.
package metered

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/internal/warning"
)

// Metering describes how a [Writer] charges a response.
type Metering struct {
	// Meter is charged, for example one from meter.From. Required.
	Meter *meter.Meter
	// Units returns the cost of a chunk, 0 or more. Required. It must not keep the
	// chunk. A negative result counts as 0 and is logged once, with the code
	// algo.negative_usage.
	Units func(chunk []byte) int64
	// Most is the most that a chunk costs, if that is known; the default 0: it is not.
	// After each chunk so much is reserved for the next one, so nothing exceeds the
	// limit if the first reservation covers the first chunk. A chunk that costs more is
	// charged in full and logged once, with the code metered.above_most.
	Most int64
	// OnDenied selects the behavior when the limit has no room.
	OnDenied OnDenied
}

// OnDenied selects the behavior for a response that its limit denies in the
// middle.
type OnDenied uint8

const (
	// StopStream sends and charges the chunk that was denied, and fails every later
	// Write with a [Denied]. The response ends with a whole chunk.
	StopStream OnDenied = iota
	// HoldStream waits before the chunk until the limit has room. If that is never, or
	// later than the context ends, the chunk is not charged, and this and every later
	// Write fail with a [Denied].
	HoldStream
	// FinishStream sends the rest. Units that do not fit become debt: later
	// admissions of the key wait until it has drained.
	FinishStream
)

// Denied is the error of a write to a response that the limit has stopped.
type Denied struct {
	Decision algo.Decision // its RetryAfter says when there is room again
	Err      error         // of the limiter or of the context, or nil
}

func (e *Denied) Error() string {
	if e.Err != nil {
		return "metered: the limit stopped the response: " + e.Err.Error()
	}
	return fmt.Sprintf("metered: the limit stopped the response (%v): retry after %v", e.Decision.Reason, e.Decision.RetryAfter)
}

// Unwrap returns Err.
func (e *Denied) Unwrap() error { return e.Err }

// New returns a writer that charges the bytes written to w, chunk by chunk. A
// chunk is an event of a response with the Content-Type text/event-stream, a line of
// JSON lines (application/x-ndjson and its like), and else, or with a
// Content-Encoding, each Write. Events and lines that are written in parts are put
// together for Units, up to 64 KiB; a larger one counts as several chunks.
//
// Bound: the limiter's for the reserved units. A stream exceeds it by at most one
// chunk with StopStream, by nothing with HoldStream or if Most holds, and by its rest
// with FinishStream.
//
// Parts of a chunk are sent as they come, so HoldStream holds back the last part only.
// With Most, HoldStream may also wait after the last chunk. An error of the limiter
// counts as a denial for ever. ctx bounds the waiting, but a reservation goes on when it
// ends, so a client that hangs up is charged for the part that was sent.
//
// New panics if Meter or Units is nil, Most is negative, or OnDenied unknown.
// The writer has Flush, and Unwrap for http.ResponseController. It is not safe for
// concurrent use. A httputil.ReverseProxy aborts the connection when a Write fails: to
// end the response well, copy the body in a handler.
func New(ctx context.Context, w http.ResponseWriter, m Metering) *Writer {
	switch {
	case m.Meter == nil:
		panic("metered: New: the Meter is nil")
	case m.Units == nil:
		panic("metered: New: the function Units is nil")
	case m.Most < 0:
		panic(fmt.Sprintf("metered: New: Most is %d, want 0 or more", m.Most))
	case m.OnDenied > FinishStream:
		panic(fmt.Sprintf("metered: New: OnDenied is %d, want StopStream, HoldStream or FinishStream", m.OnDenied))
	}
	return &Writer{ResponseWriter: w, metering: m, ctx: ctx, charging: context.WithoutCancel(ctx)}
}

// Writer charges the chunks written to it; see [New].
type Writer struct {
	http.ResponseWriter
	metering Metering
	ctx      context.Context
	charging context.Context // without the end of ctx: a client that hangs up has still used the charged units
	chunks   chunks
	begun    bool
	denied   Denied // the latest answer of the limit
	stopped  error  // denied, once the response is stopped
}

// Write charges the chunks that p completes, and writes p, or after a denial the part
// of p that is admitted.
func (w *Writer) Write(p []byte) (sent int, err error) {
	if w.stopped != nil {
		return 0, w.stopped
	}
	if !w.begun {
		w.begun, w.chunks.end = true, framing(w.Header())
	}
	for from := 0; from < len(p); {
		chunk, end := w.chunks.next(p, from)
		if chunk == nil {
			break // the rest of p begins a chunk
		}
		n := w.units(chunk)
		fits := w.fits(n)
		if !fits && w.metering.OnDenied == HoldStream {
			if sent, err = w.forward(p, sent, from); err != nil || !w.await(n) {
				return sent, cmp.Or(err, w.stopped)
			}
			fits = true
		}
		w.metering.Meter.Use(n)
		if !fits || !w.fits(w.metering.Most) {
			if sent, err = w.forward(p, sent, end); err != nil || !w.await(w.metering.Most) {
				return sent, cmp.Or(err, w.stopped)
			}
		}
		from = end
	}
	return w.forward(p, sent, len(p))
}

// forward writes p[sent:end] and returns how much of p is sent.
func (w *Writer) forward(p []byte, sent, end int) (int, error) {
	if sent == end {
		return sent, nil
	}
	n, err := w.ResponseWriter.Write(p[sent:end])
	return sent + n, err
}

var warnAboveMost = &warning.Once{Line: warning.Line{
	Code:    "metered.above_most",
	Message: "metered: a chunk of a response costs more than Metering.Most, and the limit is exceeded by the difference",
	Do:      "raise Most",
}}

// units is the cost of a chunk.
func (w *Writer) units(chunk []byte) int64 {
	n := w.metering.Units(chunk)
	if n < 0 {
		w.metering.Meter.Use(n) // logs it
		return 0
	}
	if w.metering.Most > 0 && n > w.metering.Most {
		warnAboveMost.Log()
	}
	return n
}

// fits reserves n units, and reports whether the response may go on.
func (w *Writer) fits(n int64) bool {
	if n == 0 {
		return true
	}
	w.denied.Decision, w.denied.Err = w.metering.Meter.Reserve(w.charging, n)
	if w.metering.OnDenied == FinishStream {
		return true
	}
	if w.denied.Err == nil && w.denied.Decision.Allowed {
		w.denied.Err = algo.Sleep(w.ctx, w.denied.Decision.Delay)
	}
	return w.denied.Err == nil && w.denied.Decision.Allowed
}

// await is called after a denial. It waits until n units fit, or stops the response
// and returns false.
func (w *Writer) await(n int64) bool {
	if w.metering.OnDenied == HoldStream {
		w.Flush() // data that was sent shall not wait
	}
	for ok := false; !ok; ok = w.fits(n) {
		after := w.denied.Decision.RetryAfter
		if w.metering.OnDenied != HoldStream || w.denied.Err != nil || after <= 0 || after == algo.Forever {
			return w.stop()
		}
		if w.denied.Err = algo.Sleep(w.ctx, after); w.denied.Err != nil {
			return w.stop()
		}
	}
	return true
}

func (w *Writer) stop() bool {
	w.stopped = &w.denied
	return false
}

// Flush flushes the writer beneath, if it can.
func (w *Writer) Flush() { _ = w.FlushError() }

// FlushError is Flush with its error, for http.ResponseController.
func (w *Writer) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap returns the writer beneath. Writes to it are not charged.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Close charges an unfinished chunk at the end of the response, and closes the Meter:
// unused reservations come back. A usage that the upstream has reported is
// settled before, with [meter.Meter.Settle]; then Close changes nothing.
func (w *Writer) Close() error {
	defer w.metering.Meter.Close() // Units may panic
	if rest := w.chunks.partial; len(rest) > 0 && w.stopped == nil {
		w.metering.Meter.Use(w.units(rest))
	}
	w.chunks.partial = nil
	return nil
}
