package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/rpc"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// assemble makes the handler of a whole configuration.
func (g *Gateway) assemble(f *config.File, limiters map[string]algo.Limiter, overload *guard, callers config.Callers, inFlight inFlightLimits) (http.Handler, error) {
	mux := newRouter()
	for _, r := range f.Routes {
		policies := make([]httpmw.Policy, 0, len(r.Limits))
		for _, l := range r.Limits {
			p, err := g.policyOf(l, limiters[l.Name], callers)
			if err != nil {
				return nil, fmt.Errorf("limit %q: %w", l.Name, err)
			}
			policies = append(policies, p)
		}
		h := inFlight.protect(g, r, g.limitBody(f.Timeouts, keepHeader(r.UpstreamFields, g.upstream(r, f.Trusted))))
		limited := h
		if len(policies) > 0 {
			limited = inItsProtocol(r, h, func(opts ...httpmw.Option) func(http.Handler) http.Handler {
				return httpmw.Limits(policies, append(g.routeOptions(r), opts...)...)
			})
			if r.MissingKey == "deny" {
				limited = g.requireKeys(r, policies, limited)
			}
		}
		if len(policies) > 0 || r.InFlightPerClient > 0 {
			limited, err := inFlight.share(g, r, callers, limited)
			if err != nil {
				return nil, err
			}
			h = allowed(r.Access.Allow, callers.Trusted, h, pastPreflights(h, limited))
		}
		mux.handle(r, named(r.Pattern, denied(r.Access.Deny, callers.Trusted, h)))
	}
	mux.handleShort()
	client, err := callers.KeyFunc([]config.Key{{Kind: "ip"}})
	if err != nil {
		return nil, err
	}
	return identified(client, f.Trusted, limitSend(f.Timeouts.Send, forBrowsers(f.CORS, g.protect(overload, mux)))), nil
}

func (g *Gateway) policyOf(l *config.Limit, limiter algo.Limiter, callers config.Callers) (httpmw.Policy, error) {
	key, err := callers.KeyFunc(l.Keys)
	if err != nil {
		return httpmw.Policy{}, err
	}
	if find := key; g.journal != nil {
		key = func(r *http.Request) (string, error) {
			key, err := find(r)
			if err == nil {
				g.journal.Note(l.Name, key)
			}
			return key, err
		}
	}
	if l.Shadow {
		limiter = algo.Shadow(limiter)
	}
	return httpmw.Policy{Name: l.Name, Limiter: limiter, Key: key, Cost: costOf(l.Cost)}, nil
}

var missing = map[string]int{"shared": httpmw.Shared, "deny": http.StatusUnauthorized, "skip": httpmw.Skip}

func (g *Gateway) routeOptions(r *config.Route) []httpmw.Option {
	headers := map[string]httpmw.HeadersMode{"ietf": httpmw.IETF, "legacy": httpmw.Legacy, "none": httpmw.None}
	opts := []httpmw.Option{
		httpmw.WithHeaders(headers[r.Headers]),
		httpmw.WithMissingKey(missing[r.MissingKey]),
		httpmw.WithObserver(g.observer()),
	}
	if len(r.RefundOn) > 0 {
		opts = append(opts, httpmw.WithRefundIf(func(status int) bool { return slices.Contains(r.RefundOn, status) }))
	}
	if r.Denial != nil {
		opts = append(opts, httpmw.WithDenied(denialOf(r.Denial)))
	}
	return opts
}

// inItsProtocol limits a handler, so that calls of gRPC, gRPC-Web and Connect are denied in their
// words. The limits are the same for all.
func inItsProtocol(r *config.Route, next http.Handler, limit func(...httpmw.Option) func(http.Handler) http.Handler) http.Handler {
	if r.Denial != nil { // it is the answer to all
		return limit()(next)
	}
	plain, calls := limit()(next), limit(httpmw.WithDenied(rpc.Denied(nil)))(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(callFormats, format(r)) || r.Header.Get("Connect-Protocol-Version") == "1" {
			calls.ServeHTTP(w, r)
			return
		}
		plain.ServeHTTP(w, r)
	})
}

// callFormats are those of gRPC, gRPC-Web and streams of Connect.
var callFormats = []string{"application/grpc", "application/grpc-web", "application/grpc-web-text", "application/connect"}

// observer counts denials for Served, and calls the observer of the options.
func (g *Gateway) observer() telemetry.Observer {
	return func(e telemetry.Event) {
		if e.Result == telemetry.Denied || e.Result == telemetry.FailedClosed {
			if is := requestIn(e.Context); is != nil {
				is.Denied, is.Policy, is.Cause = true, e.Policy, e.Decision.Reason.String()
				if c := e.Decision.Cause.String(); c != "" {
					is.Cause += ":" + c
				}
				if e.KeyHash != 0 {
					is.Key = fmt.Sprintf("%016x", e.KeyHash)
				}
				if is.Passed && e.KeyHash == keyfunc.Hash(is.Client) && g.passed.Allow("", 1) {
					g.opts.Log.Warn("a denied request came through a proxy that is not trusted, whose clients share one key",
						"code", "gateway.untrusted_proxy", "policy", e.Policy, "peer", is.Client, "do", "name it in trusted_proxies if it is yours")
				}
			}
		}
		if g.opts.Observe != nil {
			g.opts.Observe(e)
		}
	}
}

// costOf is the cost function of a limit; nil where every request costs one. A
// header without a whole number of 1 or more costs one: an invalid value never
// lowers the cost.
func costOf(c config.Cost) func(*http.Request) int64 {
	switch {
	case c.Header != "":
		return func(r *http.Request) int64 {
			n, err := strconv.ParseInt(r.Header.Get(c.Header), 10, 64)
			if err != nil || n < 1 {
				return 1
			}
			return n
		}
	case c.Units > 1:
		return func(*http.Request) int64 { return c.Units }
	}
	return nil
}
