package grpcmw

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/algo"
)

// pushbackKey is the trailer of gRFC A6: milliseconds to wait before the next
// attempt, or -1 for no further attempt. Two values also mean no further
// attempt, so there must be exactly one.
const pushbackKey = "grpc-retry-pushback-ms"

const (
	doNotRetry = -1
	// unstated is the wait asked for where a limiter denies and gives none.
	unstated = time.Second
	// mostJitter bounds what is added to a wait, next to a fifth of it.
	mostJitter = 5 * time.Second
)

// left is how much time the caller has, algo.Forever without a deadline.
func left(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return time.Until(deadline)
	}
	return algo.Forever
}

// pushback is the trailer's value for a denial that ends after wait, when the
// caller has left: it tells the client not to try again when it would not live
// to see the answer. random is in [0, 1).
func pushback(wait, left time.Duration, random float64) int32 {
	if wait >= left {
		return doNotRetry
	}
	ms := milliseconds(jittered(wait, left, random))
	if ms >= int64(left/time.Millisecond) {
		return doNotRetry
	}
	return int32(min(ms, math.MaxInt32))
}

// jittered spreads those who wait, upward only: earlier would be denied again.
// It does not lead beyond what is left.
func jittered(wait, left time.Duration, random float64) time.Duration {
	spread := min(wait/5, mostJitter, left-wait)
	return wait + time.Duration(random*float64(spread))
}

// milliseconds rounds up.
func milliseconds(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// setPushback writes the trailer of a unary call, unless one is there: an
// interceptor between two limiters may call on twice, and so be denied twice.
// The transport's stream shows what was written, although its public interface
// does not have the method.
func setPushback(ctx context.Context, ms int32) {
	stream := grpc.ServerTransportStreamFromContext(ctx)
	if stream == nil {
		return // called without a transport
	}
	if t, ok := stream.(interface{ Trailer() metadata.MD }); ok && len(t.Trailer()[pushbackKey]) > 0 {
		return
	}
	// The error says that the stream is over; nobody is left to tell.
	_ = stream.SetTrailer(pushbackTrailer(ms))
}

func pushbackTrailer(ms int32) metadata.MD {
	return metadata.MD{pushbackKey: {strconv.FormatInt(int64(ms), 10)}}
}

func random() float64 { return rand.Float64() }
