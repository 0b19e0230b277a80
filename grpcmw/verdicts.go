package grpcmw

import (
	"context"
	"sync"

	"google.golang.org/grpc"
)

// verdicts collects what the limiters stacked on one stream told the client.
// On a stream several may deny, each a message of its own, and only one value
// may be sent: the longest, by the outermost limiter. (A unary call ends at the
// first denial, so that there is nothing to collect.)
type verdicts struct {
	mu    sync.Mutex
	worst *denial
}

type verdictsKey struct{}

// verdictsOf finds those of the stream that ctx belongs to, and otherwise makes
// them: then the caller is the outermost limiter.
func verdictsOf(ctx context.Context) (v *verdicts, outermost bool) {
	if v, ok := ctx.Value(verdictsKey{}).(*verdicts); ok {
		return v, false
	}
	return new(verdicts), true
}

func (v *verdicts) add(d *denial) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.worst == nil || longer(d.pushback, v.worst.pushback) {
		v.worst = d
	}
}

// longer orders pushbacks: not at all is the longest.
func longer(a, b int32) bool { return b != doNotRetry && (a == doNotRetry || a > b) }

func (v *verdicts) writeTo(ss grpc.ServerStream) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.worst != nil {
		ss.SetTrailer(pushbackTrailer(v.worst.pushback))
	}
}
