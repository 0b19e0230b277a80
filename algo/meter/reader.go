package meter

import (
	"context"
	"io"

	"github.com/sluice-go/sluice/algo"
)

// mostRead bounds a Read, so that a fast limit means short waits.
const mostRead = 32 << 10

// NewReader returns a reader of src that keeps a limit of bytes: of l under key, a unit for each
// byte. It paces both directions:
//
//	io.Copy(w, meter.NewReader(ctx, file, perUser, user))        // a download
//	r.Body = io.NopCloser(meter.NewReader(ctx, r.Body, l, user)) // an upload
//
// For a download with ranges, give [net/http.ServeContent] a struct of this io.Reader and the
// file as its io.Seeker.
//
// Bound: the bytes that all readers of a key have returned keep the bound of the limiter, B + R*w
// for a token bucket. A Read takes at most 32 KiB and at most the burst from src, and waits for
// their admission, as [algo.Wait] does, before it returns them; so a burst of less than some
// KiB makes many small reads. On Redis a limit is at most 1e6 bytes per second, and each Read is a
// round trip, unless the store has blocks.
//
// A Read returns the errors of src and of algo.Wait: when ctx ends, when its deadline comes
// before the bytes may be returned, and when l denies for ever. Then the bytes that it took from
// src are lost. Timeouts of a server must be longer than the transfer. NewReader panics if src
// or l is nil.
func NewReader(ctx context.Context, src io.Reader, l algo.Limiter, key string) io.Reader {
	if src == nil || l == nil {
		panic("meter: NewReader: the source or the limiter is nil")
	}
	return &reader{ctx, src, l, key}
}

type reader struct {
	ctx context.Context
	src io.Reader
	l   algo.Limiter
	key string
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	most := int64(mostRead)
	l, err := algo.Resolve(r.ctx, r.l, r.key)
	if err != nil {
		return 0, err
	}
	if quota := algo.About(l).Quota; quota > 0 {
		most = min(most, quota)
	}
	n, err := r.src.Read(p[:min(int64(len(p)), most)])
	if n <= 0 {
		return n, err
	}
	lease, denied := algo.Wait(r.ctx, l, r.key, int64(n))
	if denied != nil {
		return 0, denied
	}
	lease.Release(algo.Succeeded)
	return n, err
}
