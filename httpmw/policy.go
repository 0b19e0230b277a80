package httpmw

import (
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// Limits is [Limit] for several policies in one decision: a request is charged
// to all of them or to none, see [algo.AcquireAll]. The RateLimit fields have
// an item for each policy, in the order of ps; the problem details of a denial
// name those that had no room, and Retry-After suffices for all of them.
//
//	handler = httpmw.Limits([]httpmw.Policy{
//		{Name: "burst", Limiter: perSecond, Key: keyfunc.ClientIP()},
//		{Name: "daily", Limiter: perDay, Key: keyfunc.ClientIP()},
//	})(handler)
//
// A policy whose key is missing under [Skip], or that could not find its key
// under [FailOpen], is left out; the others still hold. A limiter that fails
// leaves the whole decision open, so that under FailOpen the request passes all
// policies: give a limit that must hold even then a middleware of its own. Put
// the policy that denies most often first, and one that may wait last.
//
// Limits panics as Limit does, if ps is empty, and if two policies have the
// same name. It takes the options of Limit except WithName.
func Limits(ps []Policy, opts ...Option) func(http.Handler) http.Handler {
	c := configure("Limits", opts)
	require(len(ps) > 0, "Limits", "there are no policies")
	g := newGuard("Limits", ps, c)
	names := map[string]bool{}
	for _, r := range g.rules {
		require(!names[r.name], "Limits", "two policies have the name "+r.name+": give each a Name")
		names[r.name] = true
	}
	return g.wrap
}

// Policy is one of several limits on the same requests; see [Limits].
type Policy struct {
	// Name is the name on the wire, as for [WithName]. "" stands for one that
	// tells the limit.
	Name string
	// Limiter decides. Required.
	Limiter algo.Limiter
	// Key says whom a request belongs to. Required.
	Key keyfunc.HTTP
	// Cost is what a request costs, as for [WithCost]; nil: what WithCost says,
	// else 1.
	Cost func(*http.Request) int64
}
