package httpmw

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// Transport makes a client keep to a limit, and to what servers ask for:
//
//	client := &http.Client{Transport: httpmw.Transport(nil, limiter, keyfunc.Global())}
//
// A request waits until l admits it, as [algo.Wait] does, and until the server
// is ready for it: after a 429 or 503 with Retry-After, or an answer whose
// RateLimit field says that nothing remains, the next requests of the same key
// to the same host wait that long, an hour at most. Answers go to the caller
// as they are; no request is sent twice.
//
// If the request's context ends sooner than the wait would, RoundTrip fails at
// once with an error that wraps [algo.ErrWait]. So does a denial for overload,
// because nobody knows how long it lasts. A cost that can never fit is
// [algo.ErrCost]. A request that is not sent is not charged, its body is not
// read, and it is closed. Without a deadline a request waits as long as it
// takes: set one, or http.Client.Timeout.
//
// A lease that may hold a slot is released when the body of the response is
// read to its end or closed; callers have to close it anyway. Errors, 429 and
// 5xx are Failed.
//
// base nil means http.DefaultTransport. Transport takes the options WithName,
// WithCost, WithSkip, WithRefundIf, WithOnError (an undecided request is sent,
// or fails with the error), WithMissingKey (a request that is refused fails
// with an error that wraps [keyfunc.ErrNoKey]), WithObserver and
// [WithMaxServers]. It panics if l or key is nil. It is safe for concurrent
// use if base is.
//
// Do not use it to retry: that takes a policy on what may be sent again.
func Transport(base http.RoundTripper, l algo.Limiter, key keyfunc.HTTP, opts ...Option) http.RoundTripper {
	c := configure("Transport", opts)
	g := newGuard("Transport", []Policy{{Name: c.name, Limiter: l, Key: key}}, c)
	if isNil(base) {
		base = http.DefaultTransport
	}
	return &transport{guard: g, base: base, asked: newPatience(c.maxServers)}
}

type transport struct {
	*guard
	base  http.RoundTripper
	asked *patience
}

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
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
	a := asking{guard: t.guard, rule: t.rules[0], r: r}
	var lease algo.Lease
	place, err := t.admit(&lease, &a)
	if err != nil {
		return nil, fmt.Errorf("httpmw: %s: %w", a.rule.name, err)
	}
	held := newReservation(lease)
	defer held.leave()
	if lease.Allowed {
		a.tell(Allowed, &lease.Decision, nothing, 0, nil)
	}
	sent = true
	resp, err := t.base.RoundTrip(r)
	if err != nil && r.Context().Err() != nil {
		held.outcome = algo.Ignored
	}
	t.receive(held, place, resp, err)
	return resp, err
}

// admit waits until the request may be sent. A request that passes unlimited
// waits for the server too, and its lease stays zero.
func (t *transport) admit(lease *algo.Lease, a *asking) (place server, err error) {
	ctx := a.r.Context()
	key, n, v, err := a.rule.weigh(a.r, t.missing)
	a.key, a.n, place = key, n, server{host(a.r), key}
	var last *algo.Decision
	switch {
	case err != nil:
	case v == refuse:
		err, last = keyfunc.ErrNoKey, keyless()
	case v == pass:
		err = t.asked.wait(ctx, place)
	default:
		start := t.start()
		last, err = t.wait(ctx, lease, place, n)
		a.stop(start)
	}
	if err != nil && t.failure(a.r, err) == FailedOpen {
		logFailure(a.rule.name, err)
		late := t.asked.wait(ctx, place)
		if late == nil {
			a.tell(FailedOpen, nil, nothing, 0, err)
			return place, nil
		}
		err = late
	}
	if err != nil {
		a.tell(t.failure(a.r, err), last, nothing, 0, err)
	}
	return place, err
}

// wait acquires n units and waits until the server is ready. For an observer
// it returns what the limiter said last.
func (t *transport) wait(ctx context.Context, lease *algo.Lease, s server, n int64) (last *algo.Decision, err error) {
	if err := t.asked.wait(ctx, s); err != nil {
		return nil, err
	}
	l := t.rules[0].limiter
	if t.observe != nil {
		heard := &listener{limiter: l}
		l, last = heard, &heard.last
	}
	if *lease, err = algo.Wait(ctx, l, s.key, n); err != nil {
		return last, err
	}
	// Meanwhile another request may have been told to wait.
	if err := t.asked.wait(ctx, s); err != nil {
		lease.Release(algo.Canceled)
		*lease = algo.Lease{}
		return last, err
	}
	return last, nil
}

// listener keeps the decision that algo.Wait turns into an error.
type listener struct {
	limiter algo.Limiter
	last    algo.Decision
}

func (l *listener) Acquire(ctx context.Context, key string, n int64) (algo.Lease, error) {
	lease, err := l.limiter.Acquire(ctx, key, n)
	l.last = lease.Decision
	return lease, err
}

// failure says what becomes of a request that was not admitted. It is sent all
// the same if the limiter failed, not if it refused.
func (t *transport) failure(r *http.Request, err error) Result {
	switch {
	case gone(r):
		return Canceled
	case errors.Is(err, algo.ErrWait), errors.Is(err, algo.ErrCost), errors.Is(err, keyfunc.ErrNoKey), r.Context().Err() != nil:
		return Denied
	case t.onError == FailOpen:
		return FailedOpen
	}
	return FailedClosed
}

// receive remembers what the server asked for and settles the lease, or lets
// it end with the body.
func (t *transport) receive(held *reservation, s server, resp *http.Response, err error) {
	if err != nil || resp == nil {
		return
	}
	t.asked.heed(s, resp)
	status := resp.StatusCode
	held.outcome = algo.Succeeded
	switch {
	case t.refundIf != nil && t.refundIf(status):
		held.outcome = algo.Canceled
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		held.outcome = algo.Failed
	}
	if t.rules[0].mayHold && held.lease.Allowed && held.outcome != algo.Canceled {
		resp.Body = held.until(resp.Body)
	}
}

func host(r *http.Request) string {
	if r.URL == nil {
		return ""
	}
	return r.URL.Host
}
