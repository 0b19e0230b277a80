package httpmw

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/admission"
	"github.com/sluice-go/sluice/keyfunc"
)

// Transport paces a client by a limit and by the waits that servers ask for:
//
//	client := &http.Client{Transport: httpmw.Transport(nil, limiter, keyfunc.Global())}
//
// A request waits until l admits it, and until the server accepts it: after a
// 429 or 503 with Retry-After, or an answer whose RateLimit field says that
// nothing remains, the next requests of the same key to the same host wait that
// long, at most a year, and after it the limit holds again. Requests of the same
// key wait for l in the order of their arrival. Answers go to the caller unchanged;
// no request is sent twice.
//
// A Transport around another one keeps two limits, such as one for each host and one
// in total:
//
//	total := httpmw.Transport(nil, perSecond, keyfunc.Global())
//	client := &http.Client{Transport: httpmw.Transport(total, perHost, toHost)}
//
// where toHost returns r.URL.Host. A request that waits for the inner limit is charged
// to the outer one already, so it may start later than the outer limit admitted it.
//
// RoundTrip fails at once with an error that wraps
//
//   - [algo.ErrWait] if the request's context ends sooner than the wait would,
//     after a denial for overload, whose end is unknown, and after a denial for
//     ever;
//   - [algo.ErrCost] if the cost can never fit.
//
// A request that is not sent is not charged, its body is not read, and it is
// closed. Without a deadline a request waits as long as it takes: set one, or
// http.Client.Timeout.
//
// A lease that may hold a slot is released when the body of the response is
// read to its end or closed; callers have to close it anyway. The outcome of
// errors, 429 and 5xx is Failed.
//
// base nil means http.DefaultTransport. Transport takes the options WithName,
// WithCost, WithSkip, WithRefundIf, WithOnError (an undecided request is sent,
// or fails with the error), WithMissingKey (a request that is refused fails
// with an error that wraps [keyfunc.ErrNoKey]), WithObserver, [WithMaxServers] and
// [WithServerWait]. It panics if l or key is nil. It is safe for concurrent
// use if base is.
//
// Do not use it to retry: that takes a policy on which requests may be repeated.
func Transport(base http.RoundTripper, l algo.Limiter, key keyfunc.HTTP, opts ...Option) http.RoundTripper {
	s := configure(clientAdapter, "Transport", forTransport, opts)
	p := admission.NewPolicy(clientAdapter, &s.Settings, l, key, "Transport")
	if admission.IsNil(base) {
		base = http.DefaultTransport
	}
	return &transport{
		Policy: p, ownOptions: s.Own, base: base, backoff: admission.NewServerWaits(s.Own.maxServers), occupiesSlot: algo.OccupiesSlot(l),
	}
}

type transport struct {
	*admission.Policy[*http.Request]
	ownOptions
	base         http.RoundTripper
	backoff      *admission.ServerWaits
	occupiesSlot bool // the lease must end with the body
}

// CloseIdleConnections forwards http.Client.CloseIdleConnections.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.skip != nil && t.skip(r) {
		return t.base.RoundTrip(r)
	}
	sent := false
	defer func() {
		if !sent && r.Body != nil {
			_ = r.Body.Close()
		}
	}()
	a := admission.Attempt{MaxWait: algo.Forever}
	var lease algo.Lease
	place, err := t.admit(&lease, &a, r)
	if err != nil {
		return nil, fmt.Errorf("httpmw: %s: %w", t.Name, err)
	}
	res := newReservation(lease)
	defer res.leave()
	if lease.Allowed {
		t.Report(&a, Allowed, &lease.Decision, "", 0, telemetry.Sent{})
	}
	sent = true
	resp, err := t.base.RoundTrip(r)
	if err != nil && r.Context().Err() != nil {
		res.outcome = algo.Failed | algo.Untimed
	}
	t.handleResponse(res, place, resp, err)
	return resp, err
}

// admit waits until the request may be sent, and reports everything but an
// admission. A request that passes unlimited waits for the server too, and its
// lease stays zero.
func (t *transport) admit(lease *algo.Lease, a *admission.Attempt, r *http.Request) (place admission.Server, err error) {
	ctx := r.Context()
	result := t.KeyAndCost(ctx, r, lease, a)
	place = admission.Server{Host: host(r), Key: a.Key}
	if passes(result) {
		if err = ctx.Err(); err == nil {
			result, err = t.waitForBoth(ctx, place, lease, a, result)
		}
	}
	switch {
	case err != nil:
		lease.Release(algo.Canceled)
		a.Err, result = err, Denied
		if errors.Is(ctx.Err(), context.Canceled) {
			result = Canceled
		}
	case result == Allowed || result == admission.Skipped:
		return place, nil
	case result == Denied:
		a.Err = denialError(a, &lease.Decision)
	}
	t.Report(a, result, &lease.Decision, "", 0, telemetry.Sent{})
	if result == FailedOpen {
		return place, nil
	}
	return place, a.Err
}

// waitForBoth waits until the server accepts the request and the limiter admits it. A
// server that asks to wait meanwhile makes the admission void: requests that kept theirs
// would start together.
func (t *transport) waitForBoth(ctx context.Context, place admission.Server, lease *algo.Lease, a *admission.Attempt, result Result) (Result, error) {
	for {
		if err := t.backoff.Wait(ctx, place, algo.Forever); err != nil || result != Allowed {
			return result, err
		}
		result = t.Acquire(ctx, lease, a)
		if !passes(result) || t.backoff.Left(place) <= 0 {
			return result, nil
		}
		lease.Release(algo.Canceled)
	}
}

// passes reports whether a request with this result is sent.
func passes(r Result) bool { return r == Allowed || r == FailedOpen || r == admission.Skipped }

// denialError is the error for a request that the limiter denied.
func denialError(a *admission.Attempt, d *algo.Decision) error {
	switch {
	case a.Cause == admission.ByMissingKey:
		return keyfunc.ErrNoKey
	case d.Reason == algo.Never:
		return fmt.Errorf("%w: the cost is %d, the limit %d", algo.ErrCost, a.Cost, d.Limit)
	case d.Reason == algo.Overload:
		return fmt.Errorf("%w: denied for overload", algo.ErrWait)
	case d.RetryAfter == algo.Forever:
		return fmt.Errorf("%w: denied for ever", algo.ErrWait)
	}
	return fmt.Errorf("%w: the wait of %v is longer than the time that is left", algo.ErrWait, d.RetryAfter)
}

// handleResponse remembers the wait that the server asked for and ends the lease, or
// makes it end with the body.
func (t *transport) handleResponse(res *reservation, s admission.Server, resp *http.Response, err error) {
	if err != nil || resp == nil {
		return
	}
	wait := waitIn(resp, time.Now())
	if t.serverWait != nil {
		wait = max(wait, t.serverWait(resp))
	}
	t.backoff.Update(s, wait)
	status := resp.StatusCode
	res.outcome = algo.Succeeded
	switch {
	case t.refundIf != nil && t.refundIf(status):
		res.outcome = algo.Canceled
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		res.outcome = algo.Failed
	}
	if t.occupiesSlot && res.lease.Allowed && res.outcome != algo.Canceled {
		resp.Body = res.until(resp.Body)
	}
}

func host(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	return r.URL.Host
}
