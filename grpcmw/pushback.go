package grpcmw

import (
	"context"
	"strconv"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/internal/admission"
)

// pushbackKey is the trailer of gRFC A6: milliseconds to wait before the next
// attempt, or -1 for no further attempt. Two values also mean no further
// attempt, so there must be exactly one.
const pushbackKey = "grpc-retry-pushback-ms"

// setPushback sets the trailer of a denied unary call, unless it is set: an
// interceptor between two limiters may call its handler twice, and be denied
// twice. The transport's stream has a method to read the trailer, although its
// public interface does not.
func setPushback(ctx context.Context, err error) {
	d, stream := denialIn(err), grpc.ServerTransportStreamFromContext(ctx)
	if d == nil || stream == nil { // canceled, or called without a transport
		return
	}
	if t, ok := stream.(interface{ Trailer() metadata.MD }); ok && len(t.Trailer()[pushbackKey]) > 0 {
		return
	}
	// An error means that the call is over.
	_ = stream.SetTrailer(pushbackTrailer(d.pushback))
}

func pushbackTrailer(ms int32) metadata.MD {
	return metadata.MD{pushbackKey: {strconv.FormatInt(int64(ms), 10)}}
}

// pushbacks collects the denials of the limiters on one stream. Several may deny,
// each another message, but a stream may send only one value: the outermost limiter
// sends the longest. A unary call ends at its first denial and needs none of this.
type pushbacks struct {
	mu    sync.Mutex
	worst *statusError
}

type pushbacksKey struct{}

// pushbacksOf returns the pushbacks of the stream of ctx. Without any, it makes
// them, and the caller is the outermost limiter.
func pushbacksOf(ctx context.Context) (p *pushbacks, outermost bool) {
	if p, ok := ctx.Value(pushbacksKey{}).(*pushbacks); ok {
		return p, false
	}
	return new(pushbacks), true
}

// add keeps a denial. Other errors have no pushback.
func (p *pushbacks) add(err error) {
	d := denialIn(err)
	if d == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worst == nil || longer(d.pushback, p.worst.pushback) {
		p.worst = d
	}
}

// longer reports whether a is longer than b; no retry at all is the longest.
func longer(a, b int32) bool {
	return b != admission.DoNotRetry && (a == admission.DoNotRetry || a > b)
}

func (p *pushbacks) writeTo(ss grpc.ServerStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worst != nil {
		ss.SetTrailer(pushbackTrailer(p.worst.pushback))
	}
}
