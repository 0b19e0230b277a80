package grpcmw

import (
	"context"
	"sync"

	"google.golang.org/grpc"
)

// pushbacks collects what the limiters stacked on one stream told the client.
// On a stream several may deny, each a message of its own, and only one value
// may be sent: the longest, by the outermost limiter. (A unary call ends at the
// first denial, so that there is nothing to collect.)
type pushbacks struct {
	mu    sync.Mutex
	worst *denial
}

type pushbacksKey struct{}

// pushbacksOf finds those of the stream that ctx belongs to, and otherwise makes
// them: then the caller is the outermost limiter.
func pushbacksOf(ctx context.Context) (p *pushbacks, outermost bool) {
	if p, ok := ctx.Value(pushbacksKey{}).(*pushbacks); ok {
		return p, false
	}
	return new(pushbacks), true
}

func (p *pushbacks) add(d *denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worst == nil || longer(d.pushback, p.worst.pushback) {
		p.worst = d
	}
}

// longer orders pushbacks: not at all is the longest.
func longer(a, b int32) bool { return b != doNotRetry && (a == doNotRetry || a > b) }

func (p *pushbacks) writeTo(ss grpc.ServerStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.worst != nil {
		ss.SetTrailer(pushbackTrailer(p.worst.pushback))
	}
}
