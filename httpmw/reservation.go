package httpmw

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/sluice-go/sluice/algo"
)

// reservation is the lease of a request that is being sent. It ends with
// RoundTrip, or with the body of the response if that carries it on.
type reservation struct {
	lease   algo.Lease
	outcome algo.Outcome
	carried bool
	once    sync.Once
}

func newReservation(lease algo.Lease) *reservation {
	return &reservation{lease: lease, outcome: algo.Failed}
}

func (h *reservation) end() { h.once.Do(func() { h.lease.Release(h.outcome) }) }

// leave ends it unless the body carries it on.
func (h *reservation) leave() {
	if !h.carried {
		h.end()
	}
}

// until returns body, whose end is the end of the reservation. The body of 101
// Switching Protocols can be written to, and stays so.
func (h *reservation) until(body io.ReadCloser) io.ReadCloser {
	if body == nil || body == http.NoBody {
		return body // nothing to wait for
	}
	h.carried = true
	b := &endingBody{body, h}
	if w, ok := body.(io.Writer); ok {
		return struct {
			*endingBody
			io.Writer
		}{b, w}
	}
	return b
}

type endingBody struct {
	io.ReadCloser
	held *reservation
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.held.end()
	}
	return n, err
}

func (b *endingBody) Close() error {
	defer b.held.end()
	return b.ReadCloser.Close()
}
