// Package client paces the requests of an HTTP client by a limit, and by the waits that servers
// ask for:
//
//	c := &http.Client{Transport: client.Transport(nil, limiter, keyfunc.Global())}
//
// It does not retry, which takes a policy on which requests may be repeated.
package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/internal/option"
	"github.com/sluice-go/sluice/internal/pacing"
	"github.com/sluice-go/sluice/internal/serverwait"
	"github.com/sluice-go/sluice/keyfunc"
)

// Transport makes requests wait until l admits them and the server accepts them: after a
// 403, 429 or 503 with Retry-After, or an answer whose RateLimit fields, by any draft, state
// that nothing remains, the next requests of the same key to the same host wait that
// long, at most a year. Requests of the same key wait for l in the order of their
// arrival. Answers go to the caller unchanged; no request is sent twice.
//
// A Transport around another one keeps two limits, such as one for each host and one
// in total:
//
//	total := client.Transport(nil, perSecond, keyfunc.Global())
//	c := &http.Client{Transport: client.Transport(total, perHost, toHost)}
//
// where toHost returns r.URL.Host. A request that waits for the inner limit is charged
// to the outer one already, so it may start later than the outer limit admitted it.
//
// RoundTrip fails at once with an error that wraps
//
//   - [algo.ErrWait] if the request's context ends sooner than the wait would (a limit with MaxWait
//     may show that only when it admits), after a denial for overload, whose end is unknown, and
//     after a denial for ever;
//   - [algo.ErrCost] if the cost can never fit;
//   - the error of key, such as [keyfunc.ErrNoKey], and of l, unless [WithFailOpen].
//
// A request that is not sent is not charged; its body is closed unread. Without a
// deadline a request may wait for ever: set one, or http.Client.Timeout.
//
// A lease that may hold a slot is released when the body of the response is
// read to its end or closed; callers have to close it anyway. The outcome of
// errors, 429 and 5xx is Failed.
//
// If base is nil, Transport uses http.DefaultTransport. Transport panics if l or key is nil. It is safe for
// concurrent use if base is.
func Transport(base http.RoundTripper, l algo.Limiter, key keyfunc.HTTP, opts ...Option) http.RoundTripper {
	must(l != nil, "Transport: the limiter is nil")
	must(key != nil, "Transport: the key function is nil")
	if base == nil {
		base = http.DefaultTransport
	}
	t := &transport{Pacer: pacing.New(l), base: base, key: key, occupiesSlot: algo.About(l).NeedsRelease}
	if err := option.Apply(t, opts, Option.split, nil); err != nil {
		panic("client: Transport: " + err.Error())
	}
	return t
}

type transport struct {
	pacing.Pacer
	base         http.RoundTripper
	key          keyfunc.HTTP
	cost         func(*http.Request) int64
	skip         func(*http.Request) bool
	refundIf     func(status int) bool
	serverWait   func(*http.Response) time.Duration
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
	res := &reservation{outcome: algo.Failed}
	defer res.leave()
	c, err := t.admit(r, &res.lease)
	if err != nil {
		return nil, err
	}
	sent = true
	resp, err := t.base.RoundTrip(r)
	if err != nil && r.Context().Err() != nil {
		res.outcome = algo.Failed | algo.Untimed
	}
	t.handleResponse(r.Context(), res, c, resp, err)
	return resp, err
}

// admit waits until the request may be sent.
func (t *transport) admit(r *http.Request, lease *algo.Lease) (pacing.Call, error) {
	e := telemetry.Event{Context: r.Context(), Transport: telemetry.HTTP, Cost: 1}
	var place serverwait.Place
	place, e.Err = t.placeAndCost(r, &e.Cost)
	return t.Admit(e, place, lease, func(e telemetry.Event) (int, error) {
		return 0, fmt.Errorf("client: %s: %w", t.Name, e.Err)
	})
}

// placeAndCost finds the place of a request, and its cost unless that is 1.
func (t *transport) placeAndCost(r *http.Request, cost *int64) (place serverwait.Place, err error) {
	if r.URL != nil {
		place.Host = strings.ToLower(r.URL.Host)
	}
	if place.Key, err = t.key(r); err != nil {
		return serverwait.Place{Host: place.Host}, err
	}
	if t.cost != nil {
		if *cost = t.cost(r); *cost < 0 {
			return place, fmt.Errorf("%w: the cost function returned %d", algo.ErrCost, *cost)
		}
	}
	return place, nil
}

// handleResponse remembers the wait that the server asked for and ends the lease, or
// makes it end with the body.
func (t *transport) handleResponse(ctx context.Context, res *reservation, c pacing.Call, resp *http.Response, err error) {
	if err != nil || resp == nil {
		return
	}
	wait := waitIn(resp)
	if t.serverWait != nil {
		wait = max(wait, t.serverWait(resp))
	}
	status := resp.StatusCode
	mayDeny := status == http.StatusForbidden || status == http.StatusServiceUnavailable
	a := learn.Answer{Wait: wait, Denied: status == http.StatusTooManyRequests || mayDeny && wait > 0}
	if t.Learns() {
		a.Rate = statedRate(resp)
	}
	t.Answered(ctx, c, a)
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
