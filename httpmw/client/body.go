package client

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/sluice-go/sluice/algo"
)

// reservation is the lease of a request that is being sent. It ends with
// RoundTrip, or with the body of the response.
type reservation struct {
	lease   algo.Lease
	outcome algo.Outcome
	inBody  bool
	once    sync.Once
}

func (r *reservation) end() { r.once.Do(func() { r.lease.Release(r.outcome) }) }

// leave ends it unless the body does.
func (r *reservation) leave() {
	if !r.inBody {
		r.end()
	}
}

// until returns body, whose end is the end of the reservation. The body of 101
// Switching Protocols remains an io.Writer.
func (r *reservation) until(body io.ReadCloser) io.ReadCloser {
	if body == nil || body == http.NoBody {
		return body // nothing to wait for
	}
	r.inBody = true
	b := &endingBody{body, r}
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
	res *reservation
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.res.end()
	}
	return n, err
}

func (b *endingBody) Close() error {
	defer b.res.end()
	return b.ReadCloser.Close()
}
