package httpmw

import (
	"net/http"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

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
