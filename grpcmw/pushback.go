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

// setPushback writes the trailer of a denied unary call, unless one is there:
// an interceptor between two limiters may call on twice, and so be denied
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
	// The error says that the call is over; no client is left.
	_ = stream.SetTrailer(pushbackTrailer(d.pushback))
}

func pushbackTrailer(ms int32) metadata.MD {
	return metadata.MD{pushbackKey: {strconv.FormatInt(int64(ms), 10)}}
}

// pushbacks collects the denials of the limiters stacked on one stream. On a
// stream several may deny, each a message of its own, and only one value may be
// sent: the longest, by the outermost limiter. (A unary call ends at the first
// denial, so that there is nothing to collect.)
type pushbacks struct {
	mu    sync.Mutex
	worst *statusError
}

type pushbacksKey struct{}

// pushbacksOf returns the pushbacks of the stream of ctx. If there are none yet,
// the caller is the outermost limiter.
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

// longer orders pushbacks: no retry at all is the longest.
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
