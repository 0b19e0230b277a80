package grpcmw

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/admission"
)

// hostOf is the target of a connection; interceptors may be called without one.
func hostOf(cc *grpc.ClientConn) string {
	if cc == nil {
		return ""
	}
	return cc.Target()
}

// decideCall is decide on a client: the call also waits until the server accepts
// it. It returns the key of the call.
func (i *interceptor) decideCall(ctx context.Context, cc *grpc.ClientConn, lease *admission.Lease, method string, msg any) (key string, err error) {
	host, c := hostOf(cc), call{ctx, method, msg}
	lease.Policies = i.names
	a := admission.Attempt{MaxWait: i.maxWait}
	r := i.awaitServer(ctx, host, &lease.Lease, &a, i.KeyAndCost(ctx, c, &lease.Lease, &a))
	for r == Allowed {
		r = i.Acquire(ctx, &lease.Lease, &a)
		if i.waits == nil || i.waits.Left(admission.Server{Host: host, Key: a.Key}) <= 0 {
			break
		}
		// The server asks to wait meanwhile. Calls that kept their admission would start
		// together afterwards.
		lease.Release(algo.Canceled)
		r = i.awaitServer(ctx, host, &lease.Lease, &a, r)
	}
	if r == Allowed && i.Observe == nil {
		return a.Key, nil
	}
	return a.Key, i.answer(ctx, &a, r, &lease.Decision, method, true)
}

// awaitServer waits until the server accepts a call with the result r so far. If
// there is no time for that, nothing stays charged. It does nothing on a server.
func (i *interceptor) awaitServer(ctx context.Context, host string, lease *algo.Lease, a *admission.Attempt, r Result) Result {
	if i.waits == nil || r != Allowed && r != FailedOpen && r != admission.Skipped {
		return r
	}
	place := admission.Server{Host: host, Key: a.Key}
	err := i.waits.Wait(ctx, place, i.maxWait)
	if err == nil {
		return r
	}
	lease.Release(algo.Canceled)
	lease.Decision = algo.Decision{Reason: algo.Quota, RetryAfter: i.waits.Left(place)}
	a.Cause, a.Err = admission.ByServer, err
	if errors.Is(ctx.Err(), context.Canceled) {
		a.Err = ctx.Err()
		return Canceled
	}
	return Denied
}

// obey remembers the wait that the answer of a server asks for.
func (i *interceptor) obey(host, key string, err error, header, trailer metadata.MD) {
	if i.waits == nil {
		return
	}
	wait := askedBy(err, trailer)
	if i.serverWait != nil {
		wait = max(wait, i.serverWait(header, trailer))
	}
	i.waits.Update(admission.Server{Host: host, Key: key}, wait)
}

// askedBy is the wait that a denial of the server asks for.
func askedBy(err error, trailer metadata.MD) time.Duration {
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.ResourceExhausted && st.Code() != codes.Unavailable || strings.HasPrefix(st.Message(), clientPrefix) {
		return 0
	}
	return max(retryDelay(st), pushbackIn(trailer))
}

// WithServerWait sets a function that reads the server's requested wait from the
// metadata of an answer; 0 means none. If the pushback or the details of the answer
// have a wait too, the longer one counts. The default is none;
// [QuotaWait] reads the fields of many services.
func WithServerWait(wait func(header, trailer metadata.MD) time.Duration) Option {
	return newOption("WithServerWait", func(s *settings) error {
		s.Own.serverWait = wait
		return notNil(wait != nil)
	})
}

// QuotaWait reads the metadata in which many services say when a quota is back, for
// [WithServerWait]: x-ratelimit-remaining and x-ratelimit-reset and their like, as
// httpmw.QuotaWait describes them, and retry-after-ms, in headers and trailers.
func QuotaWait(header, trailer metadata.MD) time.Duration {
	now := time.Now()
	return max(admission.QuotaWait(header, true, now), admission.QuotaWait(trailer, true, now))
}

// retryDelay is the delay of the status's RetryInfo, 0 without one.
func retryDelay(st *status.Status) time.Duration {
	for _, d := range st.Proto().GetDetails() {
		var info errdetails.RetryInfo
		if d.MessageIs(&info) && d.UnmarshalTo(&info) == nil {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// pushbackIn is the trailer of gRFC A6; 0 without one, and for one that asks for no
// further attempt.
func pushbackIn(trailer metadata.MD) time.Duration {
	values := trailer[pushbackKey]
	if len(values) != 1 {
		return 0
	}
	wait, _ := admission.Number(values[0], "ms") // 0 for -1
	return wait
}
