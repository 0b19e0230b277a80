package proxy

import (
	"net/http"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/examples/gateway/config"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// inFlightLimits are the bounds on requests in flight to the upstreams, by pattern and
// number. One that stays is the same limiter, so that a reload does not double it.
type inFlightLimits map[inFlightLimit]*adaptive.Limiter

type inFlightLimit struct {
	pattern string
	n       int
}

// limitsInFlight returns the in-flight limits of a file.
func (g *Gateway) limitsInFlight(f *config.File) (inFlightLimits, error) {
	all := inFlightLimits{}
	for _, r := range f.Routes {
		if r.InFlight == 0 {
			continue
		}
		id := inFlightLimit{r.Pattern, r.InFlight}
		if all[id] = g.inFlight[id]; all[id] != nil {
			continue
		}
		l, err := adaptive.New(adaptive.Fixed(r.InFlight))
		if err != nil {
			return nil, err
		}
		all[id] = l
	}
	return all, nil
}

// protect answers with 503 the requests beyond the bound of the upstream of a route.
func (all inFlightLimits) protect(g *Gateway, r *config.Route, next http.Handler) http.Handler {
	if r.InFlight == 0 {
		return next
	}
	return httpmw.Limit(all[inFlightLimit{r.Pattern, r.InFlight}], keyfunc.Global(),
		httpmw.WithName("in-flight"),
		httpmw.WithHeaders(httpmw.None),
		httpmw.WithObserver(g.observer()))(next)
}
