package admin

import (
	"time"

	"github.com/sluice-go/sluice/algo"
)

// CountRequest counts an answered request once, however many limits it met; served is false for
// one that a limit denied. Call it for every request, from a handler around all limits. The chart
// of all policies then shows requests; without it the chart adds up the decisions of the limits,
// and a request that passes three of them is three.
func (a *Admin) CountRequest(served bool) {
	k := denied
	if served {
		k = admitted
	}
	a.requests.add(a.second(time.Now()), k, algo.SourceLocal)
}

// requestColumns are the requests of the last seconds; nil if none were counted, ever.
func (a *Admin) requestColumns(s *state) map[string][]uint32 {
	if a.requests.last.Load() == 0 {
		return nil
	}
	return a.requests.state(s)
}
