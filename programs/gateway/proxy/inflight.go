package proxy

import (
	"net/http"
	"slices"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// inFlightLimits are the bounds on requests in flight to the upstreams. One that stays is the same
// limiter, so that a reload does not double it.
type inFlightLimits map[inFlightLimit]algo.Limiter

type inFlightLimit struct {
	pattern   string
	n         int
	perClient bool
}

// inFlightOf are the bounds of a route.
func inFlightOf(r *config.Route) (total, perClient inFlightLimit) {
	return inFlightLimit{r.Pattern, r.InFlight, false}, inFlightLimit{r.Pattern, r.InFlightPerClient, true}
}

// limitsInFlight returns the in-flight limits of a file.
func (g *Gateway) limitsInFlight(f *config.File) (inFlightLimits, error) {
	all := inFlightLimits{}
	for _, r := range f.Routes {
		total, perClient := inFlightOf(r)
		for _, id := range []inFlightLimit{total, perClient} {
			if id.n == 0 {
				continue
			}
			if all[id] = g.inFlight[id]; all[id] != nil {
				continue
			}
			var err error
			if id.perClient {
				all[id], err = adaptive.PerKey(id.n)
			} else {
				all[id], err = adaptive.New(adaptive.Fixed(id.n))
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// protect answers with 503 the requests beyond the bound of the upstream of a route.
func (all inFlightLimits) protect(g *Gateway, r *config.Route, next http.Handler) http.Handler {
	total, _ := inFlightOf(r)
	if total.n == 0 {
		return next
	}
	return httpmw.Limit(all[total], keyfunc.Global(),
		httpmw.WithName("in-flight"),
		httpmw.WithHeaders(httpmw.None),
		httpmw.WithObserver(g.observer()))(next)
}

// share answers with 429 the requests of a client that has its part of the slots of a route. They
// are charged to no limit. A client is what the first limit of the route by client counts,
// otherwise an address.
func (all inFlightLimits) share(g *Gateway, r *config.Route, callers config.Callers, next http.Handler) (http.Handler, error) {
	_, perClient := inFlightOf(r)
	if perClient.n == 0 {
		return next, nil
	}
	keys := []config.Key{{Kind: "ip"}}
	if i := slices.IndexFunc(r.Limits, func(l *config.Limit) bool { return !config.HasKind(l.Keys, "global") }); i >= 0 {
		keys = r.Limits[i].Keys
	}
	key, err := callers.KeyFunc(keys)
	if err != nil {
		return nil, err
	}
	return httpmw.Limit(all[perClient], key,
		httpmw.WithName("in-flight-per-client"),
		httpmw.WithMissingKey(missing[r.MissingKey]),
		httpmw.WithHeaders(httpmw.None),
		httpmw.WithObserver(g.observer()))(next), nil
}

// InFlight yields each route with a bound, its requests in flight and their clients; a number is
// -1 if the route has no bound on it.
func (g *Gateway) InFlight(yield func(route string, requests, clients int)) {
	g.mu.Lock()
	file, limits := g.file, g.inFlight
	g.mu.Unlock()
	for _, r := range file.Routes {
		total, perClient := inFlightOf(r)
		requests, clients := -1, -1
		if l, ok := limits[total].(*adaptive.Limiter); ok {
			requests = l.InFlight()
		}
		if l, ok := limits[perClient].(*adaptive.KeyedLimiter); ok {
			clients = l.Len()
		}
		if requests >= 0 || clients >= 0 {
			yield(r.Pattern, requests, clients)
		}
	}
}
