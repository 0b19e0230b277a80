package proxy

import (
	"net/http"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/live"
)

// OverloadName is the name of the overload protection in metrics.
const OverloadName = "overload"

// guard is the overload protection and its entry in the file.
type guard struct {
	from    config.Overload
	limiter *adaptive.Limiter
}

// guardFor returns the protection in force if f does not change it, so that it
// keeps its measurements.
func (g *Gateway) guardFor(f *config.File) (*guard, error) {
	if g.overload != nil && g.overload.from == f.Overload {
		return g.overload, nil
	}
	l, err := live.NewOverload(f.Overload)
	if err != nil || l == nil {
		return nil, err
	}
	return &guard{f.Overload, l}, nil
}

// protect puts the protection around everything else: requests that it denies
// are charged to no limit.
func (g *Gateway) protect(overload *guard, next http.Handler) http.Handler {
	if overload == nil {
		return next
	}
	return httpmw.Limit(overload.limiter, keyfunc.Global(),
		httpmw.WithName(OverloadName),
		httpmw.WithHeaders(httpmw.None), // the capacity of the server is no client's quota
		httpmw.WithObserver(g.observer()))(next)
}
